{{/*
Which settings each ConfigMap has. There is one for each set of readers, so that no process gets settings that it does not read.
values.schema.json names the same settings; test/deploy/manifests.test.ts compares them with what each process reads.
*/}}
{{- define "posthorn.settingGroups" -}}
kafka: [KAFKA_BROKERS, KAFKA_SSL, KAFKA_SSL_CA_FILE, KAFKA_SSL_CERT_FILE, KAFKA_SSL_KEY_FILE, KAFKA_SASL_MECHANISM, KAFKA_SASL_TOKEN_FILE, TOPIC_PREFIX, RETRY_DELAYS, DEFERRAL_DELAYS]
stores: [ALLOW_PLAINTEXT_STORES]
mongodb: [MONGODB_TLS_CA_FILE, MONGODB_TLS_CERT_FILE, MONGODB_TLS_KEY_FILE]
redis: [REDIS_TLS_CA_FILE, REDIS_TLS_CERT_FILE, REDIS_TLS_KEY_FILE, REDIS_PREFIX, REDIS_SENTINELS, REDIS_SENTINEL_NAME, REDIS_CLUSTER_NODES]
topics: [TOPIC_PARTITIONS, TOPIC_REPLICATION]
retention: [RETENTION_DAYS, AUDIT_RETENTION_DAYS, MONGODB_SHARDED]
process: [LOG_LEVEL, DRAIN_TIMEOUT_MS]
tracing: [OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG, OTEL_EXPORTER_OTLP_CERTIFICATE, OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE, OTEL_EXPORTER_OTLP_CLIENT_KEY, OTEL_EXPORTER_OTLP_COMPRESSION, OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME]
links: [PUBLIC_URL]
egress: [EGRESS_ALLOW_HTTP, EGRESS_ALLOW_CIDRS, EGRESS_ALLOW_PORTS, EGRESS_DENY_CIDRS, EGRESS_DENY_HOSTS]
concurrency: [ENDPOINT_CONCURRENCY, ENDPOINT_CONCURRENCY_MAX]
accept: [RATE_LIMIT_COMPANY_PER_MINUTE, ACCEPT_LINGER_MS, INGEST_SOURCES, INGEST_COMPANY_TOPICS, QUOTA_TARGETS_PER_MESSAGE]
gateway: [RATE_LIMIT_ADDRESS_PER_MINUTE, WRONG_KEYS_PER_MINUTE, TRUSTED_PROXIES, SOURCE_IPS, OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_SCOPES, OIDC_GROUPS_CLAIM, OIDC_SESSION, OIDC_ONLY, QUOTA_PROJECTS_PER_COMPANY, QUOTA_APPS_PER_COMPANY, QUOTA_WEBHOOKS_PER_APP, QUOTA_GLOBAL_WEBHOOKS_PER_PROJECT, QUOTA_EVENT_TYPES_PER_PROJECT, QUOTA_KEYS_PER_COMPANY]
ingest: []
dispatcher: [DELIVERY_TIMEOUT_MS, MAX_IN_FLIGHT, HOST_ATTEMPTS_PER_SECOND, CIRCUIT_RESET_MS, EGRESS_PROXY_CA_FILE, EGRESS_PROXY_TARGET]
retry: [RECONCILE_AFTER, AUTO_DISABLE_AFTER, OPERATOR_WEBHOOK_FORMAT, CANARY_GATEWAY_URL, CANARY_RECEIVER_URL, CANARY_PORT, CANARY_INTERVAL]
{{- end -}}

{{/* A value as text. Numbers of a file are floats, which Helm would write as 1e+06. */}}
{{- define "posthorn.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) -}}
{{ int64 . }}
{{- else -}}
{{ . }}
{{- end -}}
{{- end -}}

{{/* All settings, as YAML: those of `settings`, with what follows from `tls` and `strimzi`. */}}
{{- define "posthorn.allSettings" -}}
{{- $settings := deepCopy .Values.settings -}}
{{- range $store, $prefix := dict "kafka" "KAFKA_SSL" "mongodb" "MONGODB_TLS" "redis" "REDIS_TLS" -}}
{{- with index $.Values.tls $store -}}
{{- if .existingSecret -}}
{{- $files := dict "CA_FILE" "ca.crt" -}}
{{- if .clientCertificate -}}
{{- $files = merge $files (dict "CERT_FILE" "tls.crt" "KEY_FILE" "tls.key") -}}
{{- end -}}
{{- range $name, $file := $files -}}
{{- $_ := set $settings (printf "%s_%s" $prefix $name) (printf "/etc/posthorn/%s-tls/%s" $store $file) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with include "posthorn.strimziCluster" . -}}
{{- $_ := set $settings "KAFKA_BROKERS" (printf "%s-kafka-bootstrap:9093" .) -}}
{{- $_ := set $settings "KAFKA_SSL" "true" -}}
{{- $_ := set $settings "KAFKA_SSL_CA_FILE" "/etc/posthorn/kafka/ca.crt" -}}
{{- $_ := set $settings "KAFKA_SASL_MECHANISM" "scram-sha-512" -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* The data of a ConfigMap, as YAML; takes the root and the group. `settings` of a service go into its own group. */}}
{{- define "posthorn.data" -}}
{{- $root := index . 0 -}}
{{- $group := index . 1 -}}
{{- $all := fromYaml (include "posthorn.allSettings" $root) -}}
{{- $data := dict -}}
{{- range index (fromYaml (include "posthorn.settingGroups" $root)) $group -}}
{{- if hasKey $all . -}}
{{- $_ := set $data . (include "posthorn.text" (index $all .)) -}}
{{- end -}}
{{- end -}}
{{- if has $group (list "gateway" "dispatcher" "retry" "ingest") -}}
{{- range $name, $value := (index $root.Values $group).settings -}}
{{- $_ := set $data $name (include "posthorn.text" $value) -}}
{{- end -}}
{{- end -}}
{{- toYaml $data -}}
{{- end -}}

{{/*
The name of a ConfigMap; takes the root and the group. It ends in a hash of its content, so that a changed setting causes a rollout,
and pods that are not replaced yet keep theirs.
*/}}
{{- define "posthorn.configMapName" -}}
{{ include "posthorn.fullname" (index . 0) }}-{{ index . 1 }}-{{ include "posthorn.data" . | sha256sum | trunc 10 }}
{{- end -}}

{{/* `envFrom` of a container; takes the root, the component and the groups that it reads. */}}
{{- define "posthorn.envFrom" -}}
{{- $root := index . 0 -}}
{{- range index . 2 }}
- configMapRef: { name: {{ include "posthorn.configMapName" (list $root .) }} }
{{- end }}
{{- with include "posthorn.added" (list $root (index . 1) "extraEnvFrom") }}
{{ . }}
{{- end }}
{{- end -}}

{{/* The variables of a container that come from the Secret; takes the root, the keys, and the keys that may be absent. */}}
{{- define "posthorn.secretEnv" -}}
{{- $root := index . 0 -}}
{{- $secret := include "posthorn.secretName" $root -}}
{{- range index . 1 }}
- name: {{ . }}
  valueFrom: { secretKeyRef: { name: {{ $secret }}, key: {{ . }} } }
{{- end }}
{{- range index . 2 }}
- name: {{ . }}
  valueFrom: { secretKeyRef: { name: {{ $secret }}, key: {{ . }}, optional: true } }
{{- end }}
{{- end -}}

{{/* User and password for Kafka; takes the root and the user that Strimzi makes. */}}
{{- define "posthorn.kafkaLogin" -}}
{{- $root := index . 0 -}}
{{- if include "posthorn.strimziCluster" $root -}}
{{- $user := printf "%s-%s" (include "posthorn.fullname" $root) (index . 1) }}
- { name: KAFKA_SASL_USERNAME, value: {{ $user }} }
- name: KAFKA_SASL_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ $user }}, key: password, optional: false } }
{{- else -}}
{{- include "posthorn.secretEnv" (list $root list (list "KAFKA_SASL_USERNAME" "KAFKA_SASL_PASSWORD")) }}
{{- end -}}
{{- end -}}

{{/* Whether topics are accepted as messages. */}}
{{- define "posthorn.ingests" -}}
{{- $all := merge dict (.Values.ingest.settings | default dict) (fromYaml (include "posthorn.allSettings" .)) -}}
{{- $sources := include "posthorn.text" ($all.INGEST_SOURCES | default "") | trim -}}
{{- if or (not (has $sources (list "" "[]"))) (eq (include "posthorn.text" $all.INGEST_COMPANY_TOPICS) "true") -}}true{{- end -}}
{{- end -}}
