import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { containerOf, find, readBase } from '../read-manifests.ts';

const COMPONENTS = `networkPolicies:
  enabled: true

# KEDA 2.17 or later, the metrics server, and the rules of \`monitoring\` in Prometheus.
autoscaling:
  enabled: false
  prometheusAddress: http://prometheus-operated.monitoring:9090
  gateway: { minReplicas: 2, maxReplicas: 12, cpu: 700m }
  # Numbers that divide settings.topics.TOPIC_PARTITIONS; others are refused.
  dispatcher: { minReplicas: 2, maxReplicas: 12 }
  retry: { minReplicas: 2, maxReplicas: 12 }

# PodMonitor and PrometheusRule, for the Prometheus operator.
monitoring:
  enabled: false

# One of the two leads clients to the gateway.
httpRoute:
  enabled: false
  hostnames: [posthorn.example.com]
  parentRefs:
    - { name: public, namespace: ingress }
ingress:
  enabled: false
  className: nginx
  host: posthorn.example.com
  tlsSecret: posthorn-gateway-tls

# The way to and from the canary, which runs when CANARY_API_KEY is in the Secret and both of its addresses are in \`settings.retry\`.
# CANARY_RECEIVER_URL must lead to the Service posthorn-canary; CANARY_GATEWAY_URL is at these addresses.
canary:
  enabled: false
  gatewayCidrs: [203.0.113.10/32]

# The ways to OPERATOR_WEBHOOK_URL and to a private EGRESS_PROXY_URL of the Secret: at these addresses, or in namespaces with the label
# posthorn/operator-webhook=true or posthorn/egress-proxy=true.
operatorWebhook:
  enabled: false
  cidrs: [203.0.113.20/32]
egressProxy:
  enabled: false
  cidrs: [203.0.113.30/32]

# A Kafka of the Strimzi operator 0.49 or later in this namespace, and its users. It sets KAFKA_BROKERS and the login.
strimzi:
  enabled: false
  brokerDisk: 200Gi
  brokerMemory: 4Gi

# One group for each ConfigMap of k8s/base. Every value is a text: '12', not 12. docs/configuration.md describes each.
settings:
`;

const KUSTOMIZATION = join(import.meta.dirname, '../base/kustomization.yaml');

/** Returns the default values: those of k8s/base, and the components switched off. */
export function valuesText(): string {
  return `${podsText()}${COMPONENTS}${settingsText()}`;
}

function podsText(): string {
  return `# Written by k8s/write-generated.ts from k8s/base. values.schema.json describes every value and refuses those that it does not know.

image:
  # The image in your registry: the project publishes none.
  repository: posthorn
  # Without a tag, the version of the chart. A digest (sha256:…) goes before the tag.
  tag: ''
  digest: ''

# Names of Secrets that you create; the chart contains none (docs/deploy-kubernetes.md).
secrets:
  settings: posthorn
  tls: posthorn-tls

# Where pods may run.
pods:
  imagePullSecrets: []
  nodeSelector: {}
  tolerations: []
  priorityClassName: ''

${['gateway', 'dispatcher', 'retry'].map(processText).join('\n')}
setup:
  resources: ${resourcesOf('create-topics')}

`;
}

function processText(name: string): string {
  return `${name}:
  # Without a number, an autoscaler or \`kubectl scale\` sets it.
  replicas: null
  resources: ${resourcesOf(name)}
`;
}

function resourcesOf(name: string): string {
  const { resources } = containerOf(find(readBase(), name));
  return stringify(resources, { collectionStyle: 'flow', lineWidth: 0 }).trim();
}

/** The literals of the ConfigMaps with their comments. */
function settingsText(): string {
  const [, generators = ''] = readFileSync(KUSTOMIZATION, 'utf8').split('configMapGenerator:\n');
  const lines = generators.split('\n').flatMap((line) => {
    const name = /^ {2}- name: posthorn-(.*)$/.exec(line)?.[1];
    if (name !== undefined) return [`  ${name}:`];
    const [, setting, value = ''] = /^ {6}- (\w+)=(.*)$/.exec(line) ?? [];
    if (setting !== undefined) return [`    ${setting}: '${value}'`];
    return /^ +#/.test(line) ? [line.replace(/^ {6}/, '    ')] : [];
  });
  return `${lines.join('\n')}\n`;
}
