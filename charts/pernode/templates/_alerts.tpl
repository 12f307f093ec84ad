{{/*
Expressions use the driver's own metrics alone, and name no job, so that they hold
however it is scraped; PerNodePluginDown excepted, whose metric is Prometheus's.
*/}}
{{- define "pernode.alerts" -}}
{{- /* Empty where what is scraped has no label of that name. */}}
{{- $name := "{{ with $labels.node }} {{ . }}{{ end }}" }}
{{- $onNode := "{{ with $labels.node }} on the node {{ . }}{{ end }}" }}
{{- if .Values.podMonitor.enabled }}
- alert: PerNodePluginDown
  expr: up{job="{{ .Release.Namespace }}/{{ include "pernode.fullname" . }}"} == 0
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: The per-node plugin {{ "{{ $labels.pod }}" }} cannot be scraped.
    description: >-
      Pods on its node that use volumes of per-node.liken.sh may not start or end. Look at the
      pod's state and log.
{{- end }}
- alert: PerNodeAbsent
  expr: absent(per_node_build_info)
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: No per-node plugin is scraped.
    description: >-
      No node shows metrics of per-node.liken.sh: it runs nowhere, or nothing scrapes it, and no
      other alert of it can fire.
- alert: PerNodeSweepFailing
  expr: increase(per_node_sweep_failures_total[{{ .Values.prometheusRule.sweepFailuresIn }}]) > 2
  labels:
    severity: warning
  annotations:
    summary: Copies of deleted volumes are not removed.
    description: >-
      A node{{ $name }} failed {{ "{{ $value | humanize }}" }} times in {{ .Values.prometheusRule.sweepFailuresIn }} to compare its copies with the
      PersistentVolumes, or to remove one. Either the API server cannot be read, or another
      cluster than the store's answers, or the disk fails; the plugin's log says which.
{{- /* A sweep that fails is the alert above. */}}
- alert: PerNodeNotSweeping
  expr: >-
    (per_node_last_sweep_timestamp_seconds == per_node_last_sweep_timestamp_seconds offset {{ .Values.prometheusRule.sweptIn }}
    or (per_node_build_info and per_node_build_info offset {{ .Values.prometheusRule.sweptIn }}) unless on (job, instance) per_node_last_sweep_timestamp_seconds)
    unless on (job, instance) increase(per_node_sweep_failures_total[{{ .Values.prometheusRule.sweepFailuresIn }}]) > 2
  for: 5m
  labels:
    severity: warning
  annotations:
    summary: A node{{ $name }} does not look for copies of deleted volumes.
    description: >-
      Its last sweep without a failure is longer ago than {{ .Values.prometheusRule.sweptIn }}, and none fails: one that began does
      not end. Mostly a disk does not answer; the plugin's log has the last line of it.
- alert: PerNodeStoreNearlyFull
  expr: per_node_store_available_bytes / per_node_store_capacity_bytes < {{ .Values.prometheusRule.storeAvailableBelow }}
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: The disk of the per-node store of a node{{ $name }} is nearly full.
    description: >-
      {{ "{{ $value | humanizePercentage }}" }} is available. No size is enforced, so one volume can fill it for all of the node;
      per_node_copy_bytes shows which is large.
- alert: PerNodeStoreFillingUp
  expr: >-
    predict_linear(per_node_store_available_bytes[6h], 24 * 3600) < 0
    and per_node_store_available_bytes / per_node_store_capacity_bytes < 0.5
    unless per_node_store_available_bytes / per_node_store_capacity_bytes < {{ .Values.prometheusRule.storeAvailableBelow }}
  for: 1h
  labels:
    severity: info
  annotations:
    summary: The disk of the per-node store of a node{{ $name }} is full within a day.
    description: >-
      So it is if it goes on as in the last six hours. per_node_copy_bytes shows which volume
      grows.
- alert: PerNodeVolumeHeld
  expr: increase(per_node_publish_refusals_total{reason="PerNodeVolumeHeld"}[15m]) > 5
  labels:
    severity: warning
  annotations:
    summary: A pod waits for a volume that another pod on its node has.
    description: >-
      A volume of per-node.liken.sh serves one pod a node. The waiting pod's Event
      PerNodeVolumeHeld names the one that has it.
- alert: PerNodeMountFailing
  expr: increase(per_node_publish_refusals_total{reason!="PerNodeVolumeHeld"}[15m]) > 2
  labels:
    severity: warning
  annotations:
    summary: A pod cannot start because its volume cannot be mounted.
    description: >-
      The waiting pod's Event {{ "{{ $labels.reason }}" }} says why.
- alert: PerNodeEventsDropped
  {{- /* The metric is common to several drivers: only that of plugins that are this one. */}}
  expr: increase(csi_events_dropped_total[1h]) > 0 and on (job, instance) per_node_build_info
  labels:
    severity: info
  annotations:
    summary: Events of the per-node plugin were lost.
    description: >-
      {{ "{{ $value | humanize }}" }} Events could not be posted in the last hour, so pods may wait without saying why.
      The plugin's log has the errors.
{{- end }}
