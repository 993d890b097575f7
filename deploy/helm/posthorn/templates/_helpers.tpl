{{/* The image, by digest where one is given. */}}
{{- define "posthorn.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ printf "%s@%s" .repository .digest }}
{{- else -}}
{{ printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The settings of one ConfigMap, as JSON; takes the root and the name. With Strimzi, those of Kafka follow from its names. */}}
{{- define "posthorn.settings" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $settings := deepCopy (index $root.Values.settings $name) -}}
{{- if and $root.Values.strimzi.enabled (eq $name "kafka") -}}
{{- $strimzi := dict "KAFKA_BROKERS" "posthorn-kafka-kafka-bootstrap:9093" "KAFKA_SSL" "true" -}}
{{- $_ := set $strimzi "KAFKA_SSL_CA_FILE" "/etc/posthorn/kafka/ca.crt" -}}
{{- $_ := set $strimzi "KAFKA_SASL_MECHANISM" "scram-sha-512" -}}
{{- $settings = mustMergeOverwrite $settings $strimzi -}}
{{- end -}}
{{- toJson $settings -}}
{{- end -}}

{{/*
The name of a ConfigMap; takes the root and the name. It ends in the hash of kustomize, so that a changed setting causes a rollout
and both ways of installing make the same names.
*/}}
{{- define "posthorn.configMapName" -}}
{{- $name := printf "posthorn-%s" (index . 1) -}}
{{- /* kustomize leaves the name out. */ -}}
{{- $content := printf "{\"data\":%s,\"kind\":\"ConfigMap\",\"name\":\"\"}" (include "posthorn.settings" .) -}}
{{- $hash := $content | sha256sum | trunc 10 | replace "0" "g" | replace "1" "h" | replace "3" "k" | replace "a" "m" | replace "e" "t" -}}
{{- printf "%s-%s" $name $hash -}}
{{- end -}}

{{/* The name of a Job; takes the root and the name. It changes with the image, the settings and the login. */}}
{{- define "posthorn.jobName" -}}
{{- $root := index . 0 -}}
{{- $parts := list (include "posthorn.image" $root) (toJson $root.Values.setup) (toJson $root.Values.secrets) (toJson $root.Values.pods) -}}
{{- $parts = append $parts (toJson $root.Values.strimzi) -}}
{{- range $name := list "kafka" "stores" "mongodb" "topics" "retention" -}}
{{- $parts = append $parts (include "posthorn.configMapName" (list $root $name)) -}}
{{- end -}}
{{- printf "posthorn-%s-%s" (index . 1) (join "\n" $parts | sha256sum | trunc 10) -}}
{{- end -}}

{{/* Where pods may run and what pulls their image. */}}
{{- define "posthorn.podSettings" -}}
{{- with .Values.pods -}}
{{- with .imagePullSecrets }}
      imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .nodeSelector }}
      nodeSelector: {{ toJson . }}
{{- end }}
{{- with .tolerations }}
      tolerations: {{ toJson . }}
{{- end }}
{{- with .priorityClassName }}
      priorityClassName: {{ . }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* User and password for Kafka; takes the root and the user that Strimzi makes. */}}
{{- define "posthorn.kafkaLogin" -}}
{{- $root := index . 0 -}}
{{- $user := index . 1 -}}
{{- if $root.Values.strimzi.enabled -}}
- { name: KAFKA_SASL_USERNAME, value: {{ $user }} }
- name: KAFKA_SASL_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ $user }}, key: password, optional: false } }
{{- else -}}
{{- range $key := list "KAFKA_SASL_USERNAME" "KAFKA_SASL_PASSWORD" }}
- name: {{ $key }}
  valueFrom:
    secretKeyRef: { name: {{ $root.Values.secrets.settings }}, key: {{ $key }}, optional: true }
{{- end }}
{{- end -}}
{{- end -}}

{{/* The CA of the Kafka that Strimzi runs. */}}
{{- define "posthorn.kafkaCaMount" -}}
{{- if .Values.strimzi.enabled -}}
- { name: kafka-ca, mountPath: /etc/posthorn/kafka, readOnly: true }
{{- end -}}
{{- end -}}

{{- define "posthorn.kafkaCaVolume" -}}
{{- if .Values.strimzi.enabled -}}
- name: kafka-ca
  secret: { secretName: posthorn-kafka-cluster-ca-cert }
{{- end -}}
{{- end -}}

{{/* The smallest divisor of TOPIC_PARTITIONS that is enough; takes the root and the service. k8s/scaling-steps.ts explains the sum. */}}
{{- define "posthorn.steps" -}}
{{- $partitions := int (index . 0).Values.settings.topics.TOPIC_PARTITIONS -}}
{{- $needed := printf "max by (namespace) (posthorn:%s_replicas:needed)" (index . 1) -}}
{{- if eq $partitions 1 -}}
{{ $needed }} > bool -1
{{- else -}}
1
{{- $step := 1 -}}
{{- range $next := untilStep 2 (int (add1 $partitions)) 1 -}}
{{- if eq 0 (mod $partitions $next) }}
  + {{ sub $next $step }} * ({{ $needed }} > bool {{ $step }})
{{- $step = $next -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A limit of an autoscaler; takes the root, the service and the name of the limit. Other numbers share partitions unevenly. */}}
{{- define "posthorn.replicaLimit" -}}
{{- $root := index . 0 -}}
{{- $partitions := $root.Values.settings.topics.TOPIC_PARTITIONS -}}
{{- $limit := index $root.Values.autoscaling (index . 1) (index . 2) -}}
{{- if mod (int $partitions) (int $limit) -}}
{{- fail (printf "autoscaling.%s.%s is %v, which does not divide the %s partitions (settings.topics.TOPIC_PARTITIONS)" (index . 1) (index . 2) $limit $partitions) -}}
{{- end -}}
{{- $limit -}}
{{- end -}}
