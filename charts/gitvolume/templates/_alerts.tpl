{{/*
Expressions use the driver's own metrics alone, and name no job, so that they hold
however it is scraped; GitVolumePluginDown excepted, whose metric is Prometheus's.
*/}}
{{- define "gitvolume.alerts" -}}
{{- if .Values.podMonitor.enabled }}
- alert: GitVolumePluginDown
  expr: up{job="{{ .Release.Namespace }}/{{ include "gitvolume.node" . }}"} == 0
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: The git plugin {{ "{{ $labels.pod }}" }} cannot be scraped.
    description: >-
      Pods on its node that use volumes of git.liken.sh may not start or end, and nothing
      follows its repositories. Look at the pod's state and log.
- alert: GitVolumeControllerDown
  expr: up{job=~"{{ .Release.Namespace }}/({{ include "gitvolume.controller" . }}|{{ include "gitvolume.webhook" . }})"} == 0
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: The git driver's controller {{ "{{ $labels.pod }}" }} cannot be scraped.
    description: >-
      New classes of claims do not count and volumes with the policy Delete stay, or, if it is
      the webhook, forges are not heard. Volumes go on. Look at the state of the pod and the
      log of its container {{ "{{ $labels.container }}" }}.
{{- end }}
- alert: GitVolumeAbsent
  expr: absent(git_csi_build_info{component="node"})
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: No git plugin is scraped.
    description: >-
      No node shows metrics of git.liken.sh: it runs nowhere, or nothing scrapes it, and no
      other alert of it can fire.
- alert: GitVolumeControllerAbsent
  expr: absent(git_csi_build_info{component="controller"}){{ if .Values.webhook.enabled }} or absent(git_csi_build_info{component="webhook"}){{ end }}
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: No {{ "{{ $labels.component }}" }} of the git driver is scraped.
    description: >-
      It runs nowhere, or nothing scrapes it. Without the controller new classes of claims do
      not count and volumes with the policy Delete stay; without the webhook forges are not
      heard. Volumes go on.
- alert: GitVolumeAbnormal
  expr: git_csi_volume_abnormal == 1
  for: {{ .Values.prometheusRule.abnormalFor }}
  labels:
    severity: warning
  annotations:
    summary: Something is wrong with a git volume.
    description: >-
      {{ "{{ $labels.volume }} in namespace {{ $labels.namespace }}" }} has been abnormal for
      {{ .Values.prometheusRule.abnormalFor }}. The Events of its pods and claim say what is wrong, and the log of
      its node's plugin.
- alert: GitVolumeFetchFailing
  expr: increase(git_csi_fetch_failures_total[{{ .Values.prometheusRule.fetchFailuresIn }}]) > 3
  labels:
    severity: warning
  annotations:
    summary: The repository {{ "{{ $labels.repo }}" }} cannot be fetched.
    description: >-
      A node failed {{ "{{ $value | humanize }}" }} times in {{ .Values.prometheusRule.fetchFailuresIn }}. Its volumes keep what they show, and
      pods that need it for the first time do not start. The Events of its pods have the
      remote's words.
- alert: GitVolumeWebhookFailing
  expr: increase(git_csi_webhook_requests_total{result="failed"}[1h]) > 0
  labels:
    severity: info
  annotations:
    summary: A forge's request could not be served.
    description: >-
      {{ "{{ $value | humanize }}" }} requests in the last hour were answered that the cluster cannot be
      read. Volumes pull when it can. The controller's log says more.
- alert: GitVolumeEventsDropped
  {{- /* The metric is common to several drivers: only that of plugins that are this one. */}}
  expr: increase(csi_events_dropped_total[1h]) > 0 and on (job, instance) git_csi_build_info
  labels:
    severity: info
  annotations:
    summary: Events of the git plugin were lost.
    description: >-
      {{ "{{ $value | humanize }}" }} Events could not be posted in the last hour, so pods may wait without saying why.
      The plugin's log has the errors.
{{- end }}
