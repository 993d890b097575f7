{{/* A list of all pods and the one of a component, together; takes the root, the component and the name. */}}
{{- define "posthorn.added" -}}
{{- $root := index . 0 -}}
{{- $own := index $root.Values (index . 1) | default dict -}}
{{- with concat (index $root.Values (index . 2) | default list) (index $own (index . 2) | default list) -}}
{{- include "posthorn.withTexts" . -}}
{{- end -}}
{{- end -}}

{{/*
A list of objects as YAML, in which what Kubernetes takes as a text only is one: the `value` of a variable or a toleration, and the
`command`, `args` and `env` of a container. It refuses numbers and booleans there.
*/}}
{{- define "posthorn.withTexts" -}}
{{- $objects := list -}}
{{- range . -}}
{{- $object := deepCopy . -}}
{{- if not (kindIs "invalid" $object.value) -}}
{{- $_ := set $object "value" (include "posthorn.text" $object.value) -}}
{{- end -}}
{{- range $name := list "command" "args" -}}
{{- with index $object $name -}}
{{- $texts := list -}}
{{- range . -}}
{{- $texts = append $texts (include "posthorn.text" .) -}}
{{- end -}}
{{- $_ := set $object $name $texts -}}
{{- end -}}
{{- end -}}
{{- with $object.env -}}
{{- $_ := set $object "env" (fromYamlArray (include "posthorn.withTexts" .)) -}}
{{- end -}}
{{- $objects = append $objects $object -}}
{{- end -}}
{{- toYaml $objects -}}
{{- end -}}

{{/* A map of all pods and the one of a component, together. */}}
{{- define "posthorn.merged" -}}
{{- $root := index . 0 -}}
{{- $own := index $root.Values (index . 1) | default dict -}}
{{- include "posthorn.texts" (merge dict (index $own (index . 2) | default dict) (index $root.Values (index . 2) | default dict)) -}}
{{- end -}}

{{/* Annotations of the ServiceAccount of a process. */}}
{{- define "posthorn.accountAnnotations" -}}
{{- $root := index . 0 -}}
{{- $own := dig "serviceAccount" "annotations" dict (index $root.Values (index . 1)) -}}
{{- include "posthorn.texts" (merge dict $own $root.Values.serviceAccount.annotations) -}}
{{- end -}}

{{/* The value of a component; without one, that of all pods. */}}
{{- define "posthorn.chosen" -}}
{{- $root := index . 0 -}}
{{- $own := index $root.Values (index . 1) | default dict -}}
{{- with index $own (index . 2) | default (index $root.Values (index . 2)) -}}
{{- if eq (index $ 2) "nodeSelector" -}}
{{- include "posthorn.texts" . -}}
{{- else if eq (index $ 2) "tolerations" -}}
{{- include "posthorn.withTexts" . -}}
{{- else -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels of a pod; takes the root, the component that selects it, and the component whose values it has. */}}
{{- define "posthorn.podLabels" -}}
{{- $root := index . 0 -}}
{{- $own := include "posthorn.ownPodLabels" . -}}
{{ $own }}
{{- with include "posthorn.furtherLabels" (list $own (index $root.Values (index . 2)).podLabels $root.Values.podLabels) }}
{{ . }}
{{- end }}
{{- end -}}

{{- define "posthorn.ownPodLabels" -}}
{{ include "posthorn.selectorLabels" . }}
app.kubernetes.io/part-of: posthorn
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
{{- end -}}

{{/*
The beginning of a pod's `spec`: who it is, where it may run, and its security; takes the root, the component whose values it has,
and the process of its ServiceAccount.
*/}}
{{- define "posthorn.podSpec" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
serviceAccountName: {{ include "posthorn.serviceAccountName" (list $root (index . 2)) }}
automountServiceAccountToken: false
# No variables named after the Services of the namespace: a Service called `ops` would set OPS_PORT.
enableServiceLinks: false
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- range $key := list "priorityClassName" "nodeSelector" "tolerations" "affinity" }}
{{- with include "posthorn.chosen" (list $root $component $key) }}
{{ $key }}:
  {{- . | nindent 2 }}
{{- end }}
{{- end }}
securityContext:
  # Without a user id: the image has a numeric one, and OpenShift assigns another to each namespace.
  runAsNonRoot: true
  seccompProfile: { type: RuntimeDefault }
{{- with include "posthorn.added" (list $root $component "initContainers") }}
initContainers:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Spreads the pods of a service over nodes and zones, unless the values say how; takes the root and the service. */}}
{{- define "posthorn.topologySpread" -}}
{{- $selector := include "posthorn.selectorLabels" . -}}
{{- with include "posthorn.chosen" (list (index . 0) (index . 1) "topologySpreadConstraints") -}}
{{ . }}
{{- else -}}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- topologyKey: {{ . }}
  maxSkew: 1
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- $selector | nindent 6 }}
  # Each rollout is spread independently of the pods that it replaces.
  matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}
{{- end -}}

{{/* `resources` and security of a container; takes the root and the component. */}}
{{- define "posthorn.container" -}}
{{- $resources := dict -}}
{{- range $kind, $amounts := (index (index . 0).Values (index . 1)).resources -}}
{{- $_ := set $resources $kind (fromYaml (include "posthorn.texts" $amounts)) -}}
{{- end -}}
resources: {{ toJson $resources }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end -}}

{{/* Takes the root, the component and the stores that it connects to. */}}
{{- define "posthorn.volumeMounts" -}}
{{- $root := index . 0 -}}
{{- if and (has "kafka" (index . 2)) (include "posthorn.strimziCluster" $root) }}
- { name: kafka-ca, mountPath: /etc/posthorn/kafka, readOnly: true }
{{- end }}
- { name: tls, mountPath: /etc/posthorn/tls, readOnly: true }
{{- range index . 2 }}
{{- if (index $root.Values.tls .).existingSecret }}
- { name: {{ . }}-tls, mountPath: /etc/posthorn/{{ . }}-tls, readOnly: true }
{{- end }}
{{- end }}
{{- with include "posthorn.added" (list $root (index . 1) "extraVolumeMounts") }}
{{ . }}
{{- end }}
{{- end -}}

{{/* The volumes of these mounts. */}}
{{- define "posthorn.volumes" -}}
{{- $root := index . 0 -}}
{{- with include "posthorn.strimziCluster" $root }}
{{- if has "kafka" (index $ 2) }}
- name: kafka-ca
  secret: { secretName: {{ . }}-cluster-ca-cert }
{{- end }}
{{- end }}
- name: tls
  secret: { secretName: {{ $root.Values.secrets.tls | default (printf "%s-tls" (include "posthorn.fullname" $root)) }}, optional: true }
{{- range $store := index . 2 }}
{{- with (index $root.Values.tls $store).existingSecret }}
- name: {{ $store }}-tls
  secret: { secretName: {{ . }} }
{{- end }}
{{- end }}
{{- with include "posthorn.added" (list $root (index . 1) "extraVolumes") }}
{{ . }}
{{- end }}
{{- end -}}

{{/* Takes the root, the service and its management port. A PodMonitor finds the port itself: with both, Prometheus would scrape twice. */}}
{{- define "posthorn.podAnnotations" -}}
{{- $root := index . 0 -}}
{{- $annotations := fromYaml (include "posthorn.merged" (list $root (index . 1) "podAnnotations")) -}}
{{- if not $root.Values.monitoring.enabled -}}
{{- $scrape := dict "prometheus.io/scrape" "true" "prometheus.io/port" (toString (index . 2)) "prometheus.io/path" "/metrics" -}}
{{- $annotations = merge $annotations $scrape -}}
{{- end -}}
{{- include "posthorn.texts" $annotations -}}
{{- end -}}

{{/* The probes of a service, all on its management port. */}}
{{- define "posthorn.probes" -}}
# A start without MongoDB, Kafka or topics exits within 30 s; this probe is for one that hangs.
startupProbe:
  httpGet: { path: /livez, port: ops }
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 45
readinessProbe:
  httpGet: { path: /readyz, port: ops }
  periodSeconds: 5
  timeoutSeconds: 2
  failureThreshold: 2
# Checks no dependency: restarting this pod does not repair a store.
livenessProbe:
  httpGet: { path: /livez, port: ops }
  periodSeconds: 10
  timeoutSeconds: 3
  failureThreshold: 6
lifecycle:
  preStop:
    # Time for every node to stop routing to this pod, before SIGTERM closes the port.
    sleep: { seconds: 5 }
{{- end -}}

{{/*
The number of pods of a service. Without one an autoscaler or `kubectl scale` sets it, and an upgrade keeps it. Not `default`, which
takes 0 for nothing.
*/}}
{{- define "posthorn.replicas" -}}
{{- $root := index . 0 -}}
{{- $service := index $root.Values (index . 1) -}}
{{- if not $root.Values.autoscaling.enabled -}}
{{- $count := kindIs "invalid" $service.replicaCount | ternary $service.replicas $service.replicaCount -}}
{{- if not (kindIs "invalid" $count) -}}
replicas: {{ $count }}
{{- end -}}
{{- end -}}
{{- end -}}
