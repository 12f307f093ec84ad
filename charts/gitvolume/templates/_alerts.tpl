{{/*
Expressions use the driver's own metrics alone, and name no job, so that they hold
however it is scraped; GitVolumePluginDown excepted, whose metric is Prometheus's.
*/}}
{{- define "gitvolume.alerts" -}}
{{- /* Empty where what is scraped has no label of that name. */}}
{{- $name := "{{ with $labels.node }} {{ . }}{{ end }}" }}
{{- $onNode := "{{ with $labels.node }} on the node {{ . }}{{ end }}" }}
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
{{- /* A fault with an alert of its own is one alert, not two. A push that is on its way
is no fault. */}}
- alert: GitVolumeAbnormal
  expr: >-
    git_csi_volume_abnormal == 1 unless on (job, instance, namespace, claim) (
    git_csi_diverged == 1 or git_csi_skipped_files > 0
    or (git_csi_pending_paths > 0 and git_csi_armed == 0)
    or min_over_time(git_csi_unpushed_commits[5m]) > 0)
  for: {{ .Values.prometheusRule.abnormalFor }}
  labels:
    severity: warning
  annotations:
    summary: Something is wrong with the git volume {{ "{{ $labels.namespace }}/{{ $labels.volume }}" }}.
    description: >-
      It has been abnormal{{ $onNode }} for {{ .Values.prometheusRule.abnormalFor }}. The Events of its pods and claim
      say what is wrong, and the log of its node's plugin.
- alert: GitVolumePushFailing
  expr: git_csi_unpushed_commits > 0 and increase(git_csi_push_failures_total[15m]) > 1
  for: {{ .Values.prometheusRule.abnormalFor }}
  labels:
    severity: warning
  annotations:
    summary: What {{ "{{ $labels.namespace }}/{{ $labels.claim }}" }} wrote is not pushed.
    description: >-
      {{ "{{ $value }}" }} commits are{{ $onNode }} alone, since pushes fail. They are tried again; if the node is lost
      before, so are they. The Event GitVolumePushFailed of the claim has the remote's words.
- alert: GitVolumeUnpushedTooLong
  expr: git_csi_unpushed_commits > 0 unless increase(git_csi_push_failures_total[15m]) > 1
  for: {{ .Values.prometheusRule.unpushedFor }}
  labels:
    severity: warning
  annotations:
    summary: What {{ "{{ $labels.namespace }}/{{ $labels.claim }}" }} wrote waits to be pushed.
    description: >-
      {{ "{{ $value }}" }} commits have been{{ $onNode }} alone for {{ .Values.prometheusRule.unpushedFor }}, and no push failed. The log of the
      node's plugin says what it waits for.
- alert: GitVolumeDiverged
  expr: git_csi_diverged == 1
  for: {{ .Values.prometheusRule.abnormalFor }}
  labels:
    severity: warning
  annotations:
    summary: The commits of {{ "{{ $labels.namespace }}/{{ $labels.claim }}" }} go to a side branch.
    description: >-
      They conflict with upstream. Somebody has to merge the side branch that the claim's Event
      GitVolumeDiverged names; until then upstream's changes do not reach the volume.
- alert: GitVolumeFilesSkipped
  expr: git_csi_skipped_files > 0
  for: {{ .Values.prometheusRule.abnormalFor }}
  labels:
    severity: warning
  annotations:
    summary: Files of {{ "{{ $labels.namespace }}/{{ $labels.claim }}" }} are not committed.
    description: >-
      {{ "{{ $value }}" }} paths are left out, and are{{ $onNode }} alone. The claim's Event GitVolumeFileSkipped names them
      and says why.
- alert: GitVolumeNotArmed
  expr: git_csi_pending_paths > 0 and git_csi_armed == 0
  for: {{ .Values.prometheusRule.abnormalFor }}
  labels:
    severity: warning
  annotations:
    summary: What {{ "{{ $labels.namespace }}/{{ $labels.claim }}" }} writes is not committed.
    description: >-
      {{ "{{ $value }}" }} changed paths are{{ $onNode }} alone, as the claim has no class that arms it. Its Event
      GitVolumeUnarmed says which it has.
- alert: GitVolumeWatchDegraded
  expr: git_csi_watch_degraded == 1
  for: 1h
  labels:
    severity: info
  annotations:
    summary: Changes of {{ "{{ $labels.namespace }}/{{ $labels.claim }}" }} are found by scans alone.
    description: >-
      File system events have failed to tell of them for an hour: nothing is lost, and the node{{ $name }} has more
      work. Mostly it is short of inotify watches.
- alert: GitVolumeFetchFailing
  expr: count by (repo) (increase(git_csi_fetch_failures_total[{{ .Values.prometheusRule.fetchFailuresIn }}]) > 3)
  labels:
    severity: warning
  annotations:
    summary: The repository {{ "{{ $labels.repo }}" }} cannot be fetched.
    description: >-
      {{ "{{ $value }}" }} nodes failed more than three times in {{ .Values.prometheusRule.fetchFailuresIn }}. Its volumes keep what they show, and
      pods that need it for the first time do not start. The Events of its pods have the
      remote's words.
- alert: GitVolumeMountFailing
  expr: >-
    sum by (job, instance, node, grpc_status_code) (increase(csi_plugin_operations_seconds_count{driver_name="{{ include "gitvolume.driver" . }}",
    method_name=~"/csi.v1.Node/Node(Stage|Publish)Volume", grpc_status_code!~"OK|Aborted|Canceled|DeadlineExceeded"}[15m])) > 2
  labels:
    severity: warning
  annotations:
    summary: Pods cannot start because their git volume cannot be mounted.
    description: >-
      {{ "{{ $value | humanize }}" }} calls of the kubelet{{ $onNode }} were answered {{ "{{ $labels.grpc_status_code }}" }} in 15 minutes. The Events of
      the waiting pods say why.
- alert: GitVolumeStoreRefusesWriteable
  expr: git_csi_store_refuses_writeable == 1
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: A node{{ $name }} takes no new writeable git volume.
    description: >-
      A reboot would empty its store, which is on a tmpfs or such. Pods that write a volume wait
      when they are put there; what is read is not affected.
- alert: GitVolumeStoreNearlyFull
  expr: git_csi_store_available_bytes / git_csi_store_capacity_bytes < {{ .Values.prometheusRule.storeAvailableBelow }}
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: The disk of the git store of a node{{ $name }} is nearly full.
    description: >-
      {{ "{{ $value | humanizePercentage }}" }} is available. Below --min-free no new volume starts there, and on a full
      disk nothing is committed. git_csi_store_bytes shows how much of it the store has.
- alert: GitVolumeStoreFillingUp
  expr: >-
    predict_linear(git_csi_store_available_bytes[6h], 24 * 3600) < 0
    and git_csi_store_available_bytes / git_csi_store_capacity_bytes < 0.5
    unless git_csi_store_available_bytes / git_csi_store_capacity_bytes < {{ .Values.prometheusRule.storeAvailableBelow }}
  for: 1h
  labels:
    severity: info
  annotations:
    summary: The disk of the git store of a node{{ $name }} is full within a day.
    description: >-
      So it is if it goes on as in the last six hours. Below --min-free no new volume starts
      there, and on a full disk nothing is committed. git_csi_store_bytes shows whether the
      store grows.
- alert: GitVolumeStoreGrowing
  expr: git_csi_store_bytes - min_over_time(git_csi_store_bytes[1d]) > {{ .Values.prometheusRule.storeGrowthGiB }} * 1024 * 1024 * 1024
  for: 2h
  labels:
    severity: info
  annotations:
    summary: The git store of a node{{ $name }} grows fast.
    description: >-
      It has grown by {{ "{{ $value | humanize1024 }}" }}B within a day. Below --min-free on its disk, no new volume starts there.
- alert: GitVolumeWebhookFailing
  expr: increase(git_csi_webhook_requests_total{result="failed"}[1h]) > 0
  labels:
    severity: info
  annotations:
    summary: A forge's request could not be served.
    description: >-
      {{ "{{ $value | humanize }}" }} requests in the last hour were answered that the cluster cannot be
      read. Volumes pull when it can. The webhook's log says more.
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
