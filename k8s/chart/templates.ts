import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { kafkaLogin, PART_OF, pods, resourcesOf, SECRET } from './pods.ts';
import { substitute, type Substitution } from './substitute.ts';

const K8S = join(import.meta.dirname, '..');

function service(name: string): string {
  const text = substitute(read(`base/${name}.yaml`), [
    PART_OF,
    ...pods(),
    ...kafkaLogin('posthorn-services'),
    SECRET,
    resourcesOf(name),
  ]);
  // The first `spec` is that of the Deployment.
  return text.replace(
    '\nspec:\n',
    // Not `with`, which takes 0 for nothing.
    `\nspec:\n  {{- if not (kindIs "invalid" .Values.${name}.replicas) }}\n  replicas: {{ .Values.${name}.replicas }}\n  {{- end }}\n`,
  );
}

/** A Job cannot be changed, so its name says what it runs: an upgrade that changes that makes a new one. */
function setup(): string {
  const [topics = '', indexes = ''] = read('base/setup.yaml').split('---\n');
  const job = (text: string, name: string, more: readonly Substitution[]): string =>
    substitute(text, [
      PART_OF,
      ...pods(),
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

/** What an operator runs by hand. Unlike a Job, a CronJob can be changed, and keeps its name. */
function cronJobs(file: string, login: readonly Substitution[]): string {
  const jobs = read(file).split('---\n');
  return jobs
    .map((job) => substitute(job, [PART_OF, ...pods(4), ...login, resourcesOf('setup', 4)]))
    .join('---\n');
}

function scaledObject(name: string): string {
  const limit = (value: string): string =>
    `{{ include "posthorn.replicaLimit" (list . "${name}" "${value}") }}`;
  return onlyIf(
    'autoscaling',
    substitute(read(`components/autoscaling/${name}.yaml`), [
      { from: 'minReplicaCount: 2', to: `minReplicaCount: ${limit('minReplicas')}` },
      { from: 'maxReplicaCount: 12', to: `maxReplicaCount: ${limit('maxReplicas')}` },
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

const USERS: readonly Substitution[] = [
  {
    from: 'name: posthorn., patternType: prefix',
    to: 'name: {{ toJson .Values.settings.kafka.TOPIC_PREFIX }}, patternType: prefix',
  },
];

/** The addresses of one peer of a policy, in place of the example. */
function cidrs(example: string, values: string): Substitution {
  return {
    from: `        - ipBlock: { cidr: ${example} }\n`,
    to: `        {{- range .Values.${values} }}
        - ipBlock: { cidr: {{ toJson . }} }
        {{- end }}
`,
  };
}

function policy(folder: string, value: string, addresses: Substitution): string {
  const text = component(`${folder}/network-policy.yaml`, value, [addresses]);
  return onlyIf('networkPolicies', text);
}

/** Returns the templates that are made from manifests, by path in `templates`. */
export function templates(): Map<string, string> {
  return new Map([
    ['gateway.yaml', service('gateway')],
    ['dispatcher.yaml', service('dispatcher')],
    ['retry.yaml', service('retry')],
    ['setup.yaml', setup()],
    [
      'topic-jobs.yaml',
      cronJobs('base/topic-jobs.yaml', kafkaLogin('posthorn-administer-topics', 4)),
    ],
    ['service-accounts.yaml', substitute(read('base/service-accounts.yaml'), [PART_OF])],
    [
      'network-policies.yaml',
      onlyIf('networkPolicies', substitute(read('base/network-policies.yaml'), [PART_OF])),
    ],
    [
      'autoscaling/gateway.yaml',
      component('autoscaling/gateway.yaml', 'autoscaling', GATEWAY_SCALER),
    ],
    ['autoscaling/dispatcher.yaml', scaledObject('dispatcher')],
    ['autoscaling/retry.yaml', scaledObject('retry')],
    ['pod-monitor.yaml', component('monitoring/pod-monitor.yaml', 'monitoring')],
    ['http-route.yaml', component('http-route/http-route.yaml', 'httpRoute', ROUTE)],
    ['ingress.yaml', component('ingress/ingress.yaml', 'ingress', INGRESS)],
    ['canary/service.yaml', component('canary/service.yaml', 'canary')],
    [
      'canary/network-policy.yaml',
      policy('canary', 'canary', cidrs('203.0.113.10/32', 'canary.gatewayCidrs')),
    ],
    [
      'egress/operator-webhook.yaml',
      policy(
        'operator-webhook',
        'operatorWebhook',
        cidrs('203.0.113.20/32', 'operatorWebhook.cidrs'),
      ),
    ],
    [
      'egress/egress-proxy.yaml',
      policy('egress-proxy', 'egressProxy', cidrs('203.0.113.30/32', 'egressProxy.cidrs')),
    ],
    ['strimzi/kafka.yaml', component('strimzi/kafka.yaml', 'strimzi', BROKERS)],
    ['strimzi/users.yaml', component('strimzi/users.yaml', 'strimzi', USERS)],
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
