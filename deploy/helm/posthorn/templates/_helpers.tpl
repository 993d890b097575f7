{{/* Names. A release called posthorn has the names of k8s/base; another one begins with its own name. */}}
{{- define "posthorn.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 37 | trimSuffix "-" -}}
{{- end -}}

{{/*
At most 37 characters: the longest suffix of a CronJob has 15, and Kubernetes allows 52. A name that is cut ends in a hash, since two
long ones may begin alike.
*/}}
{{- define "posthorn.fullname" -}}
{{- $name := include "posthorn.name" . -}}
{{- $default := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- $full := .Values.fullnameOverride | default $default -}}
{{- if gt (len $full) 37 -}}
{{- $full = printf "%s-%s" ($full | trunc 30 | trimSuffix "-") ($full | sha256sum | trunc 6) -}}
{{- end -}}
{{- $full | trimSuffix "-" -}}
{{- end -}}

{{/* The labels that select pods; takes the root and a component, or '' for every pod. They never change within a release. */}}
{{- define "posthorn.selectorLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "posthorn.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
{{- with index . 1 }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{/*
The labels of an object; takes the root, a component or '', and maps of further labels. Of several with the same name, the chart's own
goes first, then the first of these maps, then `commonLabels`: a YAML map with the same key twice is refused by some.
*/}}
{{- define "posthorn.labels" -}}
{{- $root := index . 0 -}}
{{- $own := include "posthorn.ownLabels" . -}}
{{ $own }}
{{- with include "posthorn.furtherLabels" (concat (list $own) (slice . 2) (list $root.Values.commonLabels)) }}
{{ . }}
{{- end }}
{{- end -}}

{{- define "posthorn.ownLabels" -}}
{{- $root := index . 0 -}}
{{ include "posthorn.selectorLabels" . }}
app.kubernetes.io/part-of: posthorn
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{/*
Labels of the values, without those that the chart sets; takes the latter as YAML, and the maps of the former, the first of which wins.
Labels that begin with posthorn/ and strimzi.io/ have a meaning, and are the chart's alone.
*/}}
{{- define "posthorn.furtherLabels" -}}
{{- $own := fromYaml (first .) -}}
{{- $further := dict -}}
{{- range $map := rest . -}}
{{- range $name, $value := $map -}}
{{- if not (or (hasKey $own $name) (hasKey $further $name) (regexMatch "^(posthorn|strimzi\\.io)/" $name)) -}}
{{- $_ := set $further $name $value -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "posthorn.texts" $further -}}
{{- end -}}

{{/* A map of labels, annotations or quantities as YAML, each value a text: Kubernetes refuses numbers and booleans there. */}}
{{- define "posthorn.texts" -}}
{{- $texts := dict -}}
{{- range $name, $value := . -}}
{{- $_ := set $texts $name (include "posthorn.text" $value) -}}
{{- end -}}
{{- with $texts -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/* The image, by digest where one is given. */}}
{{- define "posthorn.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ printf "%s@%s" .repository .digest }}
{{- else -}}
{{ printf "%s:%s" .repository (include "posthorn.text" (.tag | default $.Chart.AppVersion)) }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The ServiceAccount of a process; takes the root and the process. */}}
{{- define "posthorn.serviceAccountName" -}}
{{- $root := index . 0 -}}
{{- with $root.Values.serviceAccount -}}
{{- if .create -}}
{{ include "posthorn.fullname" $root }}-{{ index $ 1 }}
{{- else -}}
{{ .name | default "default" }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The Secret with the settings that are secret. */}}
{{- define "posthorn.secretName" -}}
{{ .Values.secrets.settings | default (include "posthorn.fullname" .) }}
{{- end -}}

{{/* The name of the Kafka of Strimzi, ours or an existing one; empty without Strimzi. */}}
{{- define "posthorn.strimziCluster" -}}
{{- with .Values.strimzi -}}
{{- if .existingCluster -}}
{{ .existingCluster }}
{{- else if .enabled -}}
{{ include "posthorn.fullname" $ }}-kafka
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Whether the Jobs of setup are hooks, which Helm completes before it changes anything else. With Strimzi they are not: Kafka, or
its users, come with the release itself.
*/}}
{{- define "posthorn.setupHooks" -}}
{{- if and .Values.setup.hooks (not (include "posthorn.strimziCluster" .)) -}}true{{- end -}}
{{- end -}}

{{/* Annotations of a hook; takes its weight. A hook is deleted when the next one is created, so that its log stays until then. */}}
{{- define "posthorn.hook" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation
{{- end -}}
