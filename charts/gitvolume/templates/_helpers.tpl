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

{{- define "gitvolume.selectorLabels" -}}
app.kubernetes.io/name: {{ include "gitvolume.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Those of the node plugin's pods. */}}
{{- define "gitvolume.nodeSelectorLabels" -}}
{{ include "gitvolume.selectorLabels" . }}
app.kubernetes.io/component: node
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

{{/* A digest says which image it is; a tag beside it would only claim to. */}}
{{- define "gitvolume.image" -}}
{{- $name := .Values.image.repository }}
{{- with .Values.image.registry }}{{ $name = printf "%s/%s" . $name }}{{ end }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" $name .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" $name (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
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

{{/* A plugin that is killed as it ends leaves on the node what it could have pushed. */}}
{{- define "gitvolume.checkGrace" -}}
{{- if le (int .Values.terminationGracePeriodSeconds) (include "gitvolume.seconds" .Values.stopPushTimeout | atoi) }}
{{- fail (printf "terminationGracePeriodSeconds %d: has to be longer than stopPushTimeout %q, or the plugin is killed in its last push" (int .Values.terminationGracePeriodSeconds) .Values.stopPushTimeout) }}
{{- end }}
{{- end }}
