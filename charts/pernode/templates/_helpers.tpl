{{/* The CSI name. It is the driver's, compiled in: not a value. */}}
{{- define "pernode.driver" -}}
per-node.liken.sh
{{- end }}

{{- define "pernode.name" -}}
{{- default .Chart.Name .Values.nameOverride }}
{{- end }}

{{/* Short enough for a label, and so that a name made of it is. */}}
{{- define "pernode.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride }}
{{- else }}
{{- $name := include "pernode.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 53 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 53 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "pernode.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "pernode.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "pernode.selectorLabels" -}}
app.kubernetes.io/name: {{ include "pernode.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pernode.labels" -}}
{{- include "pernode.labelsAnd" (list . dict) }}
{{- end }}

{{/* The labels of an object that has more; takes the root and those. */}}
{{- define "pernode.labelsAnd" -}}
{{- $more := last . }}
{{- with first . -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "pernode.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with merge (dict) $more .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Without the chart's version: a new chart alone is no reason for new pods. */}}
{{- define "pernode.podLabels" -}}
{{ include "pernode.selectorLabels" . }}
{{- with merge (dict) .Values.podLabels .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A digest says which image it is; a tag beside it would only claim to. */}}
{{- define "pernode.image" -}}
{{- $name := .Values.image.repository }}
{{- with .Values.image.registry }}{{ $name = printf "%s/%s" . $name }}{{ end }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" $name .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" $name (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* Where the kubelet dials the plugin, on the host. */}}
{{- define "pernode.pluginDir" -}}
{{ .Values.kubeletDir }}/plugins/{{ include "pernode.driver" . }}
{{- end }}

{{/* What the schema cannot compare: one path with another. */}}
{{- define "pernode.checkPaths" -}}
{{- $store := printf "%s/" .Values.store }}
{{- $kubelet := printf "%s/" .Values.kubeletDir }}
{{- if or (hasPrefix $kubelet $store) (hasPrefix $store $kubelet) }}
{{- /* A mount made below the Bidirectional one would come back to the host. */}}
{{- fail (printf "store %q and kubeletDir %q: neither may be in the other; put the store somewhere else" .Values.store .Values.kubeletDir) }}
{{- end }}
{{- if .Values.requireMount }}
{{- $parent := dir .Values.store }}
{{- if eq $parent "/" }}
{{- fail (printf "requireMount: the parent of the store is mounted into the container, and that of %q is the root directory; put the store a directory deeper, such as %q, and mount its disk there" .Values.store (printf "%s/per-node" .Values.store)) }}
{{- end }}
{{- if hasPrefix (printf "%s/" $parent) $kubelet }}
{{- fail (printf "requireMount: the parent of the store, %q, is mounted into the container, and kubeletDir %q is in it; put the store a directory deeper, such as %q, and mount its disk there" $parent .Values.kubeletDir (printf "%s/per-node" .Values.store)) }}
{{- end }}
{{- end }}
{{- end }}

{{/* A flag that is set twice has the last value, and the mounts would disagree with it. */}}
{{- define "pernode.checkFlags" -}}
{{- range .Values.extraArgs }}
{{- if regexMatch "^--(node-id|endpoint|kubelet-dir|store|require-mount|adopt-store|sweep-every|http|otlp-endpoint|log-level|log-format)(=|$)" . }}
{{- fail (printf "extraArgs: %s is set by another value of the chart, or by the chart itself; leave it out here" (regexFind "^[^=]+" .)) }}
{{- end }}
{{- end }}
{{- end }}
