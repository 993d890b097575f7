import type { KubernetesObject } from './installations.ts';

/**
 * The default checks of kube-linter that pod security *restricted* and the schemas do not include already. Exceptions, which a
 * cluster with kube-linter needs too:
 * - `no-anti-affinity`: topology spread constraints do the same, for nodes and for zones, and still admit a pod when they cannot;
 * - `job-ttl-seconds-after-finished` for Jobs of setup: GitOps would create again at once what has expired;
 * - `unset-cpu-requirements` for limits: throttling would show as latency.
 */
export function brokenRules(objects: readonly KubernetesObject[]): string[] {
  const workloads = objects.flatMap(workloadOf);
  return [
    ...workloads.flatMap((workload) =>
      [
        ...containersOf(workload).flatMap((container) => brokenInContainer(container)),
        ...missingReferences(workload, objects),
      ].map((problem) => `${workload.name}: ${problem}`),
    ),
    ...dangling(objects, workloads),
  ];
}

interface Container {
  name: string;
  image: string;
  ports?: { name: string; containerPort: number }[];
  env?: { name: string; value?: string }[];
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
  securityContext?: { readOnlyRootFilesystem?: boolean };
  readinessProbe?: Probe;
  livenessProbe?: Probe;
  startupProbe?: Probe;
  volumeMounts?: { name: string }[];
}

interface Probe {
  httpGet: { port: string | number };
}

interface Workload {
  name: string;
  labels: Record<string, string>;
  /** The labels that it selects pods by; a Job chooses its own. */
  selector: Record<string, string> | undefined;
  pod: {
    serviceAccountName?: string;
    containers: Container[];
    initContainers?: Container[];
    volumes?: { name: string; configMap?: unknown }[];
  };
}

function workloadOf({ kind, metadata, spec }: KubernetesObject): Workload[] {
  if (!['Deployment', 'Job', 'CronJob'].includes(kind)) return [];
  const owner = (kind === 'CronJob' ? (spec?.jobTemplate as { spec: unknown }).spec : spec) as {
    selector?: { matchLabels: Record<string, string> };
    template: { metadata: { labels: Record<string, string> }; spec: Workload['pod'] };
  };
  const { labels } = owner.template.metadata;
  return [
    {
      name: `${kind} ${metadata.name}`,
      labels,
      selector: owner.selector?.matchLabels,
      pod: owner.template.spec,
    },
  ];
}

function containersOf({ pod: { containers, initContainers = [] } }: Workload): Container[] {
  return [...containers, ...initContainers];
}

const SECRET_NAME = /password|secret|token|api_?key|encryption_key/i;

function brokenInContainer({
  name,
  image,
  ports = [],
  env = [],
  resources,
  securityContext,
  ...container
}: Container): string[] {
  const names = env.map((variable) => variable.name);
  const probes = [container.readinessProbe, container.livenessProbe, container.startupProbe];
  const rules: [rule: string, isBroken: boolean][] = [
    ['latest-tag', !/(:[^:/]+|@sha256:[0-9a-f]{64})$/.test(image) || image.endsWith(':latest')],
    ['duplicate-env-var', new Set(names).size < names.length],
    [
      'env-var-secret',
      env.some((variable) => SECRET_NAME.test(variable.name) && variable.value !== undefined),
    ],
    ['no-read-only-root-fs', securityContext?.readOnlyRootFilesystem !== true],
    ['unset-cpu-requirements', resources?.requests?.cpu === undefined],
    [
      'unset-memory-requirements',
      resources?.requests?.memory === undefined || resources.limits?.memory === undefined,
    ],
    [
      'probe-port',
      probes.some(
        (probe) =>
          probe !== undefined && !ports.some(({ name: port }) => port === probe.httpGet.port),
      ),
    ],
    ['ssh-port', ports.some(({ containerPort }) => containerPort === 22)],
  ];
  return rules.filter(([, isBroken]) => isBroken).map(([rule]) => `${rule} in ${name}`);
}

/** Volumes, ServiceAccounts and ConfigMaps that do not exist, and a selector that does not fit its own pods. */
function missingReferences(workload: Workload, objects: readonly KubernetesObject[]): string[] {
  const { pod, labels, selector = {} } = workload;
  const exists = (kind: string, name: string): boolean =>
    objects.some((object) => object.kind === kind && object.metadata.name === name);
  const mounted = containersOf(workload).flatMap(({ volumeMounts = [] }) => volumeMounts);
  const maps = JSON.stringify(pod).matchAll(/"configMapRef":\{"name":"([^"]+)"/g);
  return [
    ...mounted
      .filter(({ name }) => !pod.volumes?.some((volume) => volume.name === name))
      .map(({ name }) => `no volume ${name}`),
    ...[...maps].flatMap(([, name = '']) =>
      exists('ConfigMap', name) ? [] : [`no ConfigMap ${name}`],
    ),
    ...(exists('ServiceAccount', pod.serviceAccountName ?? '')
      ? []
      : ['non-existent-service-account']),
    ...(isWithin(selector, labels) ? [] : ['mismatching-selector']),
  ];
}

/** Services, policies and disruption budgets that select no pods. */
function dangling(objects: readonly KubernetesObject[], workloads: readonly Workload[]): string[] {
  return objects.flatMap(({ kind, metadata, spec }) => {
    if (!['Service', 'NetworkPolicy', 'PodDisruptionBudget', 'PodMonitor'].includes(kind))
      return [];
    const selector = (spec?.podSelector ?? spec?.selector ?? {}) as {
      matchLabels?: Record<string, string>;
    };
    const wanted =
      selector.matchLabels ?? (kind === 'Service' ? (selector as Record<string, string>) : {});
    return workloads.some(({ labels }) => isWithin(wanted, labels))
      ? []
      : [`${kind} ${metadata.name}: dangling`];
  });
}

function isWithin(part: Record<string, string>, whole: Record<string, string>): boolean {
  return Object.entries(part).every(([name, value]) => whole[name] === value);
}
