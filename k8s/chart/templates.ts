import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { substitute, type Substitution } from './substitute.ts';

const K8S = join(import.meta.dirname, '..');

/** Labels of objects and of pods, not those that select pods; `labels` of k8s/base/kustomization.yaml. */
const PART_OF: Substitution = {
  from: /(?<=[^a-zA-Z])labels:\n( +)app.kubernetes.io\/name: posthorn\n/,
  to: 'labels:\n<1>app.kubernetes.io/name: posthorn\n<1>app.kubernetes.io/part-of: posthorn\n',
};

/** What every pod has: image, settings, Secrets, and where it may run. */
const PODS: readonly Substitution[] = [
  {
    from: '          image: posthorn\n',
    to: '          image: {{ include "posthorn.image" . }}\n',
  },
  {
    from: /configMapRef: \{ name: posthorn-([a-z]+) \}/,
    to: 'configMapRef: { name: {{ include "posthorn.configMapName" (list . "<1>") }} }',
  },
  {
    from: 'secret: { secretName: posthorn-tls, optional: true }\n',
    to: 'secret: { secretName: {{ .Values.secrets.tls }}, optional: true }\n',
  },
  {
    from: '      automountServiceAccountToken: false\n',
    to: '      automountServiceAccountToken: false\n{{- include "posthorn.podSettings" . }}\n',
  },
];

/** The login to Kafka from the Secret, or the one that Strimzi made. */
const KAFKA_LOGIN: Substitution = {
  from: / {12}- name: KAFKA_SASL_USERNAME\n.*\n.*\n {12}- name: KAFKA_SASL_PASSWORD\n.*\n.*\n/,
  to: '            {{- include "posthorn.kafkaLogin" (list . "KAFKA_USER") | nindent 12 }}\n',
};

const KAFKA_CA: readonly Substitution[] = [
  {
    from: '          volumeMounts:\n',
    to: '          volumeMounts:\n            {{- include "posthorn.kafkaCaMount" . | nindent 12 }}\n',
  },
  {
    from: '      volumes:\n',
    to: '      volumes:\n        {{- include "posthorn.kafkaCaVolume" . | nindent 8 }}\n',
  },
];

const SECRET: Substitution = {
  from: 'secretKeyRef: { name: posthorn, key:',
  to: 'secretKeyRef: { name: {{ .Values.secrets.settings }}, key:',
};

function resourcesOf(value: string): Substitution {
  return {
    from: / {10}resources:\n(?: +#.*\n)* +requests: .*\n +limits: .*\n/,
    to: `          resources: {{ toJson .Values.${value}.resources }}\n`,
  };
}

function kafkaLogin(user: string): Substitution[] {
  return [{ ...KAFKA_LOGIN, to: KAFKA_LOGIN.to.replace('KAFKA_USER', user) }, ...KAFKA_CA];
}

function service(name: string): string {
  const text = substitute(read(`base/${name}.yaml`), [
    PART_OF,
    ...PODS,
    ...kafkaLogin('posthorn-services'),
    SECRET,
    resourcesOf(name),
  ]);
  // The first `spec` is that of the Deployment.
  return text.replace(
    '\nspec:\n',
    `\nspec:\n  {{- with .Values.${name}.replicas }}\n  replicas: {{ . }}\n  {{- end }}\n`,
  );
}

/** A Job cannot be changed, so its name says what it runs: an upgrade that changes that makes a new one. */
function setup(): string {
  const [topics = '', indexes = ''] = read('base/setup.yaml').split('---\n');
  const job = (text: string, name: string, more: readonly Substitution[]): string =>
    substitute(text, [
      PART_OF,
      ...PODS,
      ...more,
      resourcesOf('setup'),
      {
        from: `  name: posthorn-${name}\n  labels`,
        to: `  name: {{ include "posthorn.jobName" (list . "${name}") }}\n  labels`,
      },
    ]);
  return [
    job(topics, 'create-topics', kafkaLogin('posthorn-create-topics')),
    job(indexes, 'create-indexes', [SECRET]),
  ].join('---\n');
}

function scaledObject(name: string): string {
  const values = `.Values.autoscaling.${name}`;
  return onlyIf(
    'autoscaling',
    substitute(read(`components/autoscaling/${name}.yaml`), [
      { from: 'minReplicaCount: 2', to: `minReplicaCount: {{ ${values}.minReplicas }}` },
      { from: 'maxReplicaCount: 12', to: `maxReplicaCount: {{ ${values}.maxReplicas }}` },
      {
        from: 'http://prometheus-operated.monitoring:9090',
        to: '{{ .Values.autoscaling.prometheusAddress }}',
      },
      { from: 'namespace="posthorn"', to: 'namespace="{{ .Release.Namespace }}"' },
    ]),
  );
}

const GATEWAY_SCALER: readonly Substitution[] = [
  { from: 'minReplicas: 2', to: 'minReplicas: {{ .Values.autoscaling.gateway.minReplicas }}' },
  { from: 'maxReplicas: 12', to: 'maxReplicas: {{ .Values.autoscaling.gateway.maxReplicas }}' },
  { from: 'averageValue: 700m', to: 'averageValue: {{ .Values.autoscaling.gateway.cpu }}' },
];

const ROUTE: readonly Substitution[] = [
  {
    from: '    - { name: public, namespace: ingress }\n',
    to: '    {{- toYaml .Values.httpRoute.parentRefs | nindent 4 }}\n',
  },
  { from: '[posthorn.example.com]', to: '{{ toJson .Values.httpRoute.hostnames }}' },
];

const INGRESS: readonly Substitution[] = [
  { from: 'className: nginx', to: 'className: {{ .Values.ingress.className }}' },
  { from: 'ClassName: nginx', to: 'ClassName: {{ .Values.ingress.className }}' },
  { from: 'posthorn-gateway-tls', to: '{{ .Values.ingress.tlsSecret }}' },
  { from: 'posthorn.example.com', to: '{{ .Values.ingress.host }}' },
].filter(({ from }) => from !== 'className: nginx');

const BROKERS: readonly Substitution[] = [
  { from: 'size: 200Gi', to: 'size: {{ .Values.strimzi.brokerDisk }}' },
  { from: "cpu: '1', memory: 4Gi", to: "cpu: '1', memory: {{ .Values.strimzi.brokerMemory }}" },
  {
    from: 'limits: { memory: 4Gi }',
    to: 'limits: { memory: {{ .Values.strimzi.brokerMemory }} }',
  },
];

const CANARY: readonly Substitution[] = [
  {
    from: '        - ipBlock: { cidr: 203.0.113.10/32 }\n',
    to: `        {{- range .Values.canary.gatewayCidrs }}
        - ipBlock: { cidr: {{ toJson . }} }
        {{- end }}
`,
  },
];

/** Returns the templates that are made from manifests, by file name. */
export function templates(): Map<string, string> {
  return new Map([
    ['gateway.yaml', service('gateway')],
    ['dispatcher.yaml', service('dispatcher')],
    ['retry.yaml', service('retry')],
    ['setup.yaml', setup()],
    ['service-accounts.yaml', substitute(read('base/service-accounts.yaml'), [PART_OF])],
    [
      'network-policies.yaml',
      onlyIf('networkPolicies', substitute(read('base/network-policies.yaml'), [PART_OF])),
    ],
    ['gateway-scaler.yaml', component('autoscaling/gateway.yaml', 'autoscaling', GATEWAY_SCALER)],
    ['dispatcher-scaler.yaml', scaledObject('dispatcher')],
    ['retry-scaler.yaml', scaledObject('retry')],
    ['pod-monitor.yaml', component('monitoring/pod-monitor.yaml', 'monitoring')],
    ['http-route.yaml', component('http-route/http-route.yaml', 'httpRoute', ROUTE)],
    ['ingress.yaml', component('ingress/ingress.yaml', 'ingress', INGRESS)],
    ['canary.yaml', component('canary/service.yaml', 'canary')],
    [
      'canary-policy.yaml',
      onlyIf('networkPolicies', component('canary/network-policy.yaml', 'canary', CANARY)),
    ],
    ['kafka.yaml', component('strimzi/kafka.yaml', 'strimzi', BROKERS)],
    ['kafka-users.yaml', component('strimzi/users.yaml', 'strimzi')],
  ]);
}

function component(
  file: string,
  value: string,
  substitutions: readonly Substitution[] = [],
): string {
  return onlyIf(value, substitute(read(`components/${file}`), substitutions));
}

function onlyIf(value: string, text: string): string {
  return `{{- if .Values.${value}.enabled }}\n${text}{{- end }}\n`;
}

function read(file: string): string {
  return readFileSync(join(K8S, file), 'utf8');
}
