{{/* The CSI name. It is the driver's, compiled in: not a value. */}}
{{- define "gitvolume.driver" -}}
git.liken.sh
{{- end }}

{{- define "gitvolume.name" -}}
{{- default .Chart.Name .Values.nameOverride }}
{{- end }}

{{/* Short enough for a label, and so that a name made of it is. */}}
{{- define "gitvolume.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride }}
{{- else }}
{{- $name := include "gitvolume.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 53 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 53 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* The node plugin's objects. */}}
{{- define "gitvolume.node" -}}
{{ include "gitvolume.fullname" . }}-node
{{- end }}

{{- define "gitvolume.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "gitvolume.node" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The controller's objects. */}}
{{- define "gitvolume.controller" -}}
{{ include "gitvolume.fullname" . }}-controller
{{- end }}

{{- define "gitvolume.controllerServiceAccount" -}}
{{- if .Values.controller.serviceAccount.create }}
{{- default (include "gitvolume.controller" .) .Values.controller.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.controller.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The webhook's objects: what forges call, and who may read their Secrets. */}}
{{- define "gitvolume.webhook" -}}
{{ include "gitvolume.fullname" . }}-webhook
{{- end }}

{{- define "gitvolume.webhookServiceAccount" -}}
{{- if .Values.webhook.serviceAccount.create }}
{{- default (include "gitvolume.webhook" .) .Values.webhook.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.webhook.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "gitvolume.selectorLabels" -}}
app.kubernetes.io/name: {{ include "gitvolume.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Those of the node plugin's pods. */}}
{{- define "gitvolume.nodeSelectorLabels" -}}
{{ include "gitvolume.selectorLabels" . }}
app.kubernetes.io/component: node
{{- end }}

{{/* And those of the controller's. */}}
{{- define "gitvolume.controllerSelectorLabels" -}}
{{ include "gitvolume.selectorLabels" . }}
app.kubernetes.io/component: controller
{{- end }}

{{/* And those of the webhook's. */}}
{{- define "gitvolume.webhookSelectorLabels" -}}
{{ include "gitvolume.selectorLabels" . }}
app.kubernetes.io/component: webhook
{{- end }}

{{- define "gitvolume.labels" -}}
{{- include "gitvolume.labelsAnd" (list . dict) }}
{{- end }}

{{/* The labels of an object that has more; takes the root and those. */}}
{{- define "gitvolume.labelsAnd" -}}
{{- $more := last . }}
{{- with first . -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "gitvolume.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with merge (dict) $more .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Without the chart's version: a new chart alone is no reason for new pods. */}}
{{- define "gitvolume.podLabels" -}}
{{ include "gitvolume.nodeSelectorLabels" . }}
{{- with merge (dict) .Values.podLabels .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "gitvolume.controllerPodLabels" -}}
{{ include "gitvolume.controllerSelectorLabels" . }}
{{- with merge (dict) .Values.controller.podLabels .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "gitvolume.webhookPodLabels" -}}
{{ include "gitvolume.webhookSelectorLabels" . }}
{{- with merge (dict) .Values.webhook.podLabels .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Where the pods of a Deployment run. Takes the root, the values of the pods, and the name of
the template of the labels that select them. */}}
{{- define "gitvolume.placement" -}}
{{- $pods := index . 1 }}
{{- with (first .).Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pods.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $pods.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pods.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pods.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if gt (int $pods.replicas) 1 }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include (last .) (first .) | nindent 8 }}
{{- end }}
terminationGracePeriodSeconds: {{ $pods.terminationGracePeriodSeconds }}
{{- end }}

{{/* What a pod needs to be let into a namespace of the profile "restricted". */}}
{{- define "gitvolume.restrictedPod" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "gitvolume.restrictedContainer" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* A digest says which image it is; a tag beside it would only claim to. Takes the image
and the tag of one that names none. */}}
{{- define "gitvolume.imageOf" -}}
{{- $image := first . }}
{{- $name := $image.repository }}
{{- with $image.registry }}{{ $name = printf "%s/%s" . $name }}{{ end }}
{{- if $image.digest }}
{{- printf "%s@%s" $name $image.digest }}
{{- else }}
{{- printf "%s:%s" $name (default (last .) $image.tag) }}
{{- end }}
{{- end }}

{{- define "gitvolume.image" -}}
{{- include "gitvolume.imageOf" (list .Values.image .Chart.AppVersion) }}
{{- end }}

{{/* Where the kubelet dials the plugin, on the host. */}}
{{- define "gitvolume.pluginDir" -}}
{{ .Values.kubeletDir }}/plugins/{{ include "gitvolume.driver" . }}
{{- end }}

{{/* What the schema cannot compare: one path with another. */}}
{{- define "gitvolume.checkPaths" -}}
{{- $store := printf "%s/" .Values.store }}
{{- $kubelet := printf "%s/" .Values.kubeletDir }}
{{- if or (hasPrefix $kubelet $store) (hasPrefix $store $kubelet) }}
{{- /* A mount made below the Bidirectional one would come back to the host. */}}
{{- fail (printf "store %q and kubeletDir %q: neither may be in the other; put the store somewhere else" .Values.store .Values.kubeletDir) }}
{{- end }}
{{- if .Values.requireMount }}
{{- $parent := dir .Values.store }}
{{- if eq $parent "/" }}
{{- fail (printf "requireMount: the parent of the store is mounted into the container, and that of %q is the root directory; put the store a directory deeper, such as %q, and mount its disk there" .Values.store (printf "%s/git" .Values.store)) }}
{{- end }}
{{- if hasPrefix (printf "%s/" $parent) $kubelet }}
{{- fail (printf "requireMount: the parent of the store, %q, is mounted into the container, and kubeletDir %q is in it; put the store a directory deeper, such as %q, and mount its disk there" $parent .Values.kubeletDir (printf "%s/git" .Values.store)) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The whole seconds of a duration as the schema lets it through. */}}
{{- define "gitvolume.seconds" -}}
{{- $sum := 0 }}
{{- range regexFindAll "[0-9]+(h|ms|m|s)" . -1 }}
{{- $unit := get (dict "h" 3600 "m" 60 "s" 1 "ms" 0) (regexFind "[a-z]+$" .) }}
{{- $sum = add $sum (mul (regexFind "^[0-9]+" . | atoi) $unit) }}
{{- end }}
{{- $sum }}
{{- end }}

{{/* A plugin that is killed as it ends leaves on the node what it could have pushed. An ending
pod may have begun its push just before, which goes on; only then the plugin pushes what the
others wrote. The rest is for commits, and for git to end. */}}
{{- define "gitvolume.checkGrace" -}}
{{- $least := include "gitvolume.seconds" .Values.stopPushTimeout | atoi | mul 2 | add 20 }}
{{- if lt (int .Values.terminationGracePeriodSeconds) (int $least) }}
{{- fail (printf "terminationGracePeriodSeconds %d: has to be %d at least, 20 more than twice stopPushTimeout %q, or the plugin is killed in its last push" (int .Values.terminationGracePeriodSeconds) (int $least) .Values.stopPushTimeout) }}
{{- end }}
{{- end }}

{{/* A flag that is set twice has the last value, and what else follows a value of the chart
would disagree with it. Takes the name of the value, its flags, and those that other values
set. */}}
{{- define "gitvolume.checkFlags" -}}
{{- $value := first . }}
{{- $set := printf "^--?(%s)(=|$)" (last .) }}
{{- range index . 1 }}
{{- if regexMatch $set . }}
{{- fail (printf "%s: %s is set by another value of the chart, or by the chart itself; leave it out here" $value (regexFind "^[^=]+" .)) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gitvolume.flagsOfController" -}}
endpoint|http|webhook|otlp-endpoint|log-level|log-format
{{- end }}

{{- define "gitvolume.flagsOfNode" -}}
node-id|endpoint|kubelet-dir|store|require-mount|adopt-store|scan-every|demand-min-interval|stop-push-timeout|fetch-timeout|trash-keep|min-free|allow-url|allow-address|allow-insecure|allow-local-urls|http|otlp-endpoint|log-level|log-format
{{- end }}

{{/* What the schema cannot compare: ports of one pod, and what a route needs. */}}
{{- define "gitvolume.checkController" -}}
{{- $taken := dict }}
{{- range $name, $port := dict "httpPort" .Values.httpPort "controller.resizer.httpPort" .Values.controller.resizer.httpPort "controller.provisioner.httpPort" .Values.controller.provisioner.httpPort }}
{{- $key := printf "%d" (int $port) }}
{{- if hasKey $taken $key }}
{{- fail (printf "%s: the port %s of the controller's pod is that of %s too; give each another" $name $key (get $taken $key)) }}
{{- end }}
{{- $_ := set $taken $key $name }}
{{- end }}
{{- if eq (int .Values.webhook.port) (int .Values.httpPort) }}
{{- fail (printf "webhook.port: the port %d of the webhook's pod is that of httpPort too; give each another" (int .Values.httpPort)) }}
{{- end }}
{{- include "gitvolume.checkFlags" (list "controller.extraArgs" .Values.controller.extraArgs (include "gitvolume.flagsOfController" .)) }}
{{- include "gitvolume.checkFlags" (list "webhook.extraArgs" .Values.webhook.extraArgs (include "gitvolume.flagsOfController" .)) }}
{{- $sidecar := "csi-address|leader-election|leader-election-namespace|http-endpoint|metrics-address" }}
{{- include "gitvolume.checkFlags" (list "controller.resizer.extraArgs" .Values.controller.resizer.extraArgs $sidecar) }}
{{- include "gitvolume.checkFlags" (list "controller.provisioner.extraArgs" .Values.controller.provisioner.extraArgs (printf "%s|extra-create-metadata|snapshot-orphan-sweep-interval" $sidecar)) }}
{{- if and .Values.webhook.enabled (not .Values.webhook.namespaces) }}
{{- fail "webhook.namespaces: name the namespaces whose Secrets forges sign with, such as {shop}; without one no request can be verified" }}
{{- end }}
{{- if and .Values.webhook.ingress.enabled (not .Values.webhook.ingress.host) }}
{{- fail "webhook.ingress.host: name the host that forges call" }}
{{- end }}
{{- if and .Values.webhook.httpRoute.enabled (not .Values.webhook.httpRoute.gateways) }}
{{- fail "webhook.httpRoute.gateways: name the Gateway, such as {name: public, namespace: gateways}" }}
{{- end }}
{{- /* Without it none of these would be made, and nobody would be told. */}}
{{- if not .Values.webhook.enabled }}
{{- range list "ingress" "httpRoute" "networkPolicy" }}
{{- if (get $.Values.webhook .).enabled }}
{{- fail (printf "webhook.%s.enabled: there is no webhook to make it for; set webhook.enabled and webhook.namespaces too" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
