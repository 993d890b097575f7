import { isDeepStrictEqual } from 'node:util';
import { renderedByHelm } from '../../../k8s/rendered-chart.ts';
import type { OpsCheck } from '../ops-check.ts';
import { GO } from '../programs/go-programs.ts';
import { objectsIn, renderedReleases, type KubernetesObject } from './installations.ts';

type Progress = (line: string) => void;

const ROLE = { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::111122223333:role/posthorn' };
const KPS = { labels: { release: 'kps' } };
const GATEWAY_HASH = 'posthorn-gateway-*';

/** What the release `posthorn` of installations.ts must contain: kind, name, part of the object. */
const EXPECTED: readonly [kind: string, name: string, part: object][] = [
  [
    'Ingress',
    'posthorn-gateway',
    { metadata: { annotations: { 'cert-manager.io/cluster-issuer': 'letsencrypt' } } },
  ],
  [
    'Ingress',
    'posthorn-gateway',
    {
      spec: {
        ingressClassName: 'nginx',
        rules: [{ host: 'a.example.com' }, { host: 'b.example.com' }],
        tls: [{ secretName: 'hosts-tls' }],
      },
    },
  ],
  ['ServiceAccount', 'posthorn-dispatcher', { metadata: { annotations: ROLE } }],
  [
    'ServiceAccount',
    'posthorn-gateway',
    { metadata: { annotations: { ...ROLE, own: 'gateway' } } },
  ],
  [
    'Service',
    'posthorn-gateway',
    { metadata: { annotations: { scheme: 'internal' } }, spec: { type: 'LoadBalancer' } },
  ],
  ['PodMonitor', 'posthorn', { metadata: KPS }],
  [
    'PrometheusRule',
    'posthorn',
    {
      metadata: KPS,
      spec: {
        groups: [
          {
            rules: [
              {
                alert: 'PosthornServiceAbsent',
                labels: { severity: 'critical' },
                annotations: {
                  runbook_url: 'https://docs.example.com/runbook.md#posthornserviceabsent',
                },
              },
            ],
          },
        ],
      },
    },
  ],
  [
    'PrometheusRule',
    'posthorn',
    {
      spec: {
        groups: [
          { rules: [{ alert: 'PosthornAutoscalerInactive', labels: { severity: 'info' } }] },
        ],
      },
    },
  ],
  ['PrometheusRule', 'posthorn-scaling-steps', { metadata: KPS }],
  [
    'ConfigMap',
    'posthorn-dashboard-overview',
    { metadata: { labels: { grafana_dashboard: '1' } } },
  ],
  ['ConfigMap', 'posthorn-topics-*', { data: { TOPIC_PARTITIONS: '36' } }],
  [
    'ConfigMap',
    GATEWAY_HASH,
    { data: { QUOTA_APPS_PER_COMPANY: '1000000', MEMORY_MIB: '300', WRONG_KEYS_PER_MINUTE: '50' } },
  ],
  ['ConfigMap', 'posthorn-egress-*', { data: { EGRESS_ALLOW_HTTP: 'true' } }],
  [
    'ConfigMap',
    'posthorn-kafka-*',
    {
      data: {
        KAFKA_SSL_CA_FILE: '/etc/posthorn/kafka-tls/ca.crt',
        KAFKA_SSL_CERT_FILE: '/etc/posthorn/kafka-tls/tls.crt',
        KAFKA_SSL_KEY_FILE: '/etc/posthorn/kafka-tls/tls.key',
      },
    },
  ],
  [
    'ConfigMap',
    'posthorn-redis-*',
    { data: { REDIS_TLS_CA_FILE: '/etc/posthorn/redis-tls/ca.crt', REDIS_TLS_CERT_FILE: '' } },
  ],
  [
    'Deployment',
    'posthorn-gateway',
    {
      spec: {
        replicas: 3,
        template: {
          metadata: {
            labels: { team: 'api', own: 'gateway', 'app.kubernetes.io/component': 'gateway' },
            annotations: { 'vault.hashicorp.com/agent-inject': 'true' },
          },
          spec: {
            affinity: { podAntiAffinity: {} },
            nodeSelector: { own: 'gateway' },
            tolerations: [{ key: 'dedicated', value: 'true' }],
            priorityClassName: 'high',
            terminationGracePeriodSeconds: 60,
            topologySpreadConstraints: [{ topologyKey: 'rack' }],
            initContainers: [
              { name: 'wait', args: ['0.5'], env: [{ name: 'DEBUG', value: 'false' }] },
            ],
            containers: [
              {
                name: 'gateway',
                image: 'posthorn:20261127',
                resources: { requests: { cpu: '1' }, limits: { memory: '536870912' } },
                env: [
                  { name: 'ALL', value: '1000000' },
                  { name: 'ONE', value: 'true' },
                ],
                envFrom: [{ secretRef: { name: 'more' } }],
                volumeMounts: [{ name: 'scratch' }, { name: 'mongodb-tls' }],
              },
              { name: 'sidecar', command: ['sleep', '1'] },
            ],
            volumes: [
              { name: 'scratch' },
              { name: 'mongodb-tls', secret: { secretName: 'mongodb-client' } },
            ],
          },
        },
      },
    },
  ],
  ['Deployment', 'posthorn-retry', { spec: { replicas: 0 } }],
  [
    'Deployment',
    'posthorn-retry',
    {
      spec: {
        template: {
          spec: { containers: [{ ports: [{ name: 'canary', containerPort: 9200 }] }] },
        },
      },
    },
  ],
  [
    'NetworkPolicy',
    'posthorn-gateway',
    { spec: { ingress: [{ from: [{ ipBlock: { cidr: '0.0.0.0/0' } }] }] } },
  ],
  [
    'ConfigMap',
    GATEWAY_HASH,
    {
      metadata: {
        labels: { 'cost-center': '17', release: 'common', 'app.kubernetes.io/name': 'posthorn' },
        annotations: { 'argocd.argoproj.io/sync-options': 'Prune=false' },
      },
    },
  ],
  [
    'NetworkPolicy',
    'posthorn-stores',
    {
      spec: {
        egress: [
          {
            to: [
              {
                namespaceSelector: {
                  matchExpressions: [{ key: 'kubernetes.io/metadata.name', values: ['data'] }],
                },
              },
              { ipBlock: { cidr: '198.51.100.0/24' } },
            ],
          },
        ],
      },
    },
  ],
  [
    'Job',
    'posthorn-create-topics',
    {
      metadata: {
        annotations: {
          'helm.sh/hook': 'pre-install,pre-upgrade',
          'argocd.argoproj.io/hook': 'Sync',
        },
      },
    },
  ],
  [
    'ConfigMap',
    'posthorn-setup',
    {
      metadata: { annotations: { 'helm.sh/hook-weight': '-10' } },
      data: { TOPIC_PARTITIONS: '36', RETENTION_DAYS: '30', KAFKA_BROKERS: 'kafka:9092' },
    },
  ],
  [
    'ServiceAccount',
    'posthorn-hooks',
    { metadata: { annotations: { 'helm.sh/hook-weight': '-10', ...ROLE } } },
  ],
];

/** Of the release `acme`, which uses a Kafka of Strimzi that exists. */
const EXPECTED_OF_ACME: typeof EXPECTED = [
  [
    'KafkaUser',
    'acme-posthorn-services',
    { metadata: { labels: { 'strimzi.io/cluster': 'shared' } } },
  ],
  [
    'ConfigMap',
    'acme-posthorn-kafka-*',
    { data: { KAFKA_BROKERS: 'shared-kafka-bootstrap:9093', TOPIC_PREFIX: 'acme.' } },
  ],
  [
    'Deployment',
    'acme-posthorn-retry',
    {
      spec: {
        template: {
          spec: {
            volumes: [{ name: 'kafka-ca', secret: { secretName: 'shared-cluster-ca-cert' } }],
          },
        },
      },
    },
  ],
];

/** Values that the schema or a template refuses, and a part of the message. */
const REFUSED = [
  [
    'settings: { TOPIC_PARTITION: 36 }',
    "'/settings': additional properties 'TOPIC_PARTITION' not allowed",
  ],
  ['ingress: { host: a.example.com }', "'host' not allowed"],
  [
    'autoscaling: { enabled: true, retry: { maxReplicas: 5 } }',
    'does not divide the 12 partitions',
  ],
  ['extraEnv: [{ name: LIST, value: [a] }]', "at '/extraEnv/0/value': got array"],
  // Only a chart above this one can switch it off.
  ['enabled: false', "at '/enabled': value must be true"],
  ['ingress: { enabled: true, hosts: [] }', 'minItems: got 0, want 1'],
  [
    'strimzi: { enabled: true }\nfullnameOverride: a-name-of-22-characters',
    'need a name of at most 21 characters',
  ],
] as const;

export const CHART_OPENINGS: OpsCheck = {
  name: 'chart-openings',
  shows:
    'Values of the chart reach the objects, two releases share a namespace, an upgrade replaces Jobs and leaves Kafka, and wrong values are refused.',
  programs: [GO],
  isQuick: false,
  run: async (progress) => {
    const [own = [], acme = []] = (await renderedReleases(progress)).map(({ byHelm }) =>
      objectsIn(byHelm),
    );
    const problems = [
      ...EXPECTED.flatMap((expected) => missing(own, expected)),
      ...EXPECTED_OF_ACME.flatMap((expected) => missing(acme, expected)),
      ...clashes(own, acme),
      ...doublyScraped(own),
      ...acme.filter(isKafka).map(nameOf),
      ...(await clashesOfLongNames(progress)),
      ...(await problemsOfUpgrade(progress)),
      ...(await problemsBelowAnother('posthorn', progress)),
      ...(await problemsBelowAnother('webhooks', progress)),
    ];
    if (problems.length > 0) throw new Error(problems.join('\n'));
    for (const [values, message] of REFUSED) await requireRefused(values, message, progress);
    return `${EXPECTED.length + EXPECTED_OF_ACME.length} openings, ${own.length + acme.length} objects of two releases, ${REFUSED.length} refusals`;
  },
};

function missing(
  objects: readonly KubernetesObject[],
  [kind, name, part]: (typeof EXPECTED)[number],
): string[] {
  const isNamed = (each: string): boolean =>
    name.endsWith('*') ? each.startsWith(name.slice(0, -1)) : each === name;
  const found = objects.filter((object) => object.kind === kind && isNamed(object.metadata.name));
  return found.some((object) => includes(object, part))
    ? []
    : [`${kind} ${name} lacks ${JSON.stringify(part)}`];
}

/** Whether all of `part` is in `whole`; of a list, each item in some item. */
function includes(whole: unknown, part: unknown): boolean {
  if (Array.isArray(part)) {
    return Array.isArray(whole) && part.every((item) => whole.some((each) => includes(each, item)));
  }
  if (typeof part !== 'object' || part === null) return isDeepStrictEqual(whole, part);
  if (typeof whole !== 'object' || whole === null) return false;
  const fields = whole as Record<string, unknown>;
  return Object.entries(part).every(([key, value]) => includes(fields[key], value));
}

/** Objects of the same name, and pods of one release that the selectors of the other one fit. */
function clashes(one: readonly KubernetesObject[], other: readonly KubernetesObject[]): string[] {
  const names = new Set(one.map(nameOf));
  const sameName = other.map(nameOf).filter((name) => names.has(name));
  const sameSelector = [
    ...selectorsOf(one).filter((selector) => fitsAny(selector, other)),
    ...selectorsOf(other).filter((selector) => fitsAny(selector, one)),
  ];
  return [...sameName, ...sameSelector.map((each) => JSON.stringify(each))].map(
    (each) => `both releases have ${each}`,
  );
}

async function clashesOfLongNames(progress: Progress): Promise<string[]> {
  const [one = [], other = []] = await Promise.all(
    ['one', 'two'].map(async (end) => {
      const release = `a-team-with-a-name-of-fifty-characters-number-${end}`;
      return objectsIn(await renderedByHelm('', progress, { release }));
    }),
  );
  return clashes(one, other);
}

/** The same values with the next version of the chart: Kubernetes refuses to change Jobs, and a changed Kafka restarts. */
async function problemsOfUpgrade(progress: Progress): Promise<string[]> {
  const values = `image: { digest: 'sha256:${'0'.repeat(64)}' }\nstrimzi: { enabled: true }\n`;
  const before = objectsIn(await renderedByHelm(values, progress));
  const after = objectsIn(await renderedByHelm(values, progress, { version: '99.0.0' }));
  const jobs = new Set(before.filter(({ kind }) => kind === 'Job').map(nameOf));
  const [kafka, nextKafka] = [before.filter(isKafka), after.filter(isKafka)];
  return [
    ...(jobs.size === 2 ? [] : [`${jobs.size} Jobs in place of 2`]),
    ...after.map(nameOf).filter((name) => jobs.has(name)),
    ...(isDeepStrictEqual(kafka, nextKafka) ? [] : ['Kafka restarts with each version']),
    ...(kafka.length === 3 ? [] : [`${kafka.length} objects of Kafka in place of 3`]),
  ];
}

/** Another chart has this one as a dependency, which `enabled` switches on and off. */
async function problemsBelowAnother(alias: string, progress: Progress): Promise<string[]> {
  const render = (values: string): Promise<string> => renderedByHelm(values, progress, { alias });
  const kafka = "settings: { KAFKA_BROKERS: 'kafka:9092' }";
  const on = objectsIn(await render(`${alias}: { enabled: true, ${kafka} }\nglobal: { a: b }\n`));
  const off = objectsIn(await render(`${alias}: { enabled: false }\n`));
  const misspelled = `${alias}: { enabled: true, setings: {} }\n`;
  const refusal = await render(misspelled).catch((error: unknown) => String(error));
  return [
    ...(on.some(({ kind }) => kind === 'Deployment') ? [] : [`${alias}: not switched on`]),
    ...off.map((object) => `${alias} is switched off, and has ${nameOf(object)}`),
    ...(refusal.includes("'setings' not allowed") ? [] : [`${alias}: setings is not refused`]),
  ];
}

function isKafka({ kind }: KubernetesObject): boolean {
  return kind === 'Kafka' || kind === 'KafkaNodePool';
}

function selectorsOf(objects: readonly KubernetesObject[]): Record<string, string>[] {
  const text = JSON.stringify(objects.map(({ spec }) => spec ?? {}));
  const found = [
    ...text.matchAll(/"(?:podSelector|selector|labelSelector)":(\{[^{}]*(?:\{[^{}]*\})?[^{}]*\})/g),
  ];
  return found.flatMap(([, json = '{}']) => {
    const selector = JSON.parse(json) as Record<string, unknown>;
    const labels = (selector.matchLabels ?? selector) as Record<string, string>;
    return 'app.kubernetes.io/name' in labels ? [labels] : [];
  });
}

function fitsAny(selector: Record<string, string>, objects: readonly KubernetesObject[]): boolean {
  const pods = objects.flatMap(({ spec }) => {
    const template = spec?.template as { metadata?: { labels?: object } } | undefined;
    return template?.metadata?.labels ?? [];
  });
  return pods.some((labels) => includes(labels, selector));
}

function doublyScraped(objects: readonly KubernetesObject[]): string[] {
  return objects
    .filter((object) => JSON.stringify(object).includes('prometheus.io/scrape'))
    .map((object) => `${nameOf(object)} is scraped by PodMonitor and annotation`);
}

function nameOf({ kind, metadata }: KubernetesObject): string {
  return `${kind} ${metadata.name}`;
}

async function requireRefused(values: string, message: string, progress: Progress): Promise<void> {
  const outcome = await renderedByHelm(values, progress).catch((error: unknown) => String(error));
  if (!outcome.includes(message) || !outcome.includes('failed'))
    throw new Error(`The chart does not refuse ${values}:\n${outcome.slice(0, 1_000)}`);
}
