import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { renderedByHelm, WITHOUT_HOOKS } from '../../../k8s/rendered-chart.ts';
import { stepsPatches, yamlOf } from '../../../k8s/scaling-steps.ts';
import { ROOT, runProgram } from '../programs/run-program.ts';
import { builtProgram, KUSTOMIZE } from '../programs/go-programs.ts';

/** One installation, described for kustomize and for Helm. */
interface Installation {
  name: string;
  /** The folder for kustomize. */
  kustomize: string;
  /** A file of values for Helm, from the root. */
  values?: string;
}

type Progress = (line: string) => void;

const COMMITTED: readonly Installation[] = [
  { name: 'base', kustomize: 'k8s/base' },
  { name: 'local', kustomize: 'k8s/overlays/local', values: 'deploy/helm/local.yaml' },
  {
    name: 'production',
    kustomize: 'k8s/overlays/production',
    values: 'deploy/helm/production.yaml',
  },
];

/**
 * What no overlay of the repository changes: settings of every ConfigMap, an Ingress, the canary, other steps of
 * autoscaling.
 */
const OTHER_OVERLAY = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: posthorn
resources: [K8S/base]
components: [K8S/components/ingress, K8S/components/autoscaling, K8S/components/monitoring, K8S/components/canary, K8S/components/operator-webhook, K8S/components/egress-proxy, K8S/components/oidc]
images:
  - { name: posthorn, newName: other.example.com/team/posthorn, digest: DIGEST }
configMapGenerator:
  - { name: posthorn-kafka, behavior: merge, literals: ['KAFKA_BROKERS=a:9092,b:9092', KAFKA_SSL=false] }
  - { name: posthorn-topics, behavior: merge, literals: [TOPIC_PARTITIONS=24] }
  - { name: posthorn-process, behavior: merge, literals: [LOG_LEVEL=debug] }
  - { name: posthorn-tracing, behavior: merge, literals: [OTEL_EXPORTER_OTLP_COMPRESSION=gzip] }
  - { name: posthorn-egress, behavior: merge, literals: ['EGRESS_DENY_HOSTS=<a> & "b"'] }
  - { name: posthorn-retry, behavior: merge, literals: ['CANARY_GATEWAY_URL=https://other.example.com', 'CANARY_RECEIVER_URL=https://canary.example.com'] }
patches:
  - path: steps.yaml
  - target: { kind: NetworkPolicy, name: posthorn-canary }
    patch: |
      - { op: replace, path: /spec/egress/0/to, value: [{ ipBlock: { cidr: 8.8.8.8/32 } }, { ipBlock: { cidr: 8.8.4.4/32 } }] }
  - target: { kind: NetworkPolicy, name: posthorn-operator-webhook }
    patch: |
      - { op: replace, path: /spec/egress/0/to/0/ipBlock/cidr, value: 8.8.8.8/32 }
  - target: { kind: NetworkPolicy, name: posthorn-oidc }
    patch: |
      - { op: replace, path: /spec/egress/0/to/0/ipBlock/cidr, value: 8.8.8.8/32 }
`;

const OTHER_VALUES = `image: { repository: other.example.com/team/posthorn, digest: 'DIGEST' }
ingress:
  enabled: true
  className: nginx
  tls: [{ hosts: [posthorn.example.com], secretName: posthorn-gateway-tls }]
monitoring: { enabled: true }
autoscaling: { enabled: true, dispatcher: { maxReplicas: 24 }, retry: { maxReplicas: 24 } }
canary: { enabled: true, gatewayCidrs: [8.8.8.8/32, 8.8.4.4/32] }
operatorWebhook: { enabled: true, cidrs: [8.8.8.8/32] }
oidc: { enabled: true, cidrs: [8.8.8.8/32] }
egressProxy: { enabled: true }
settings:
  KAFKA_BROKERS: a:9092,b:9092
  KAFKA_SSL: false
  TOPIC_PARTITIONS: 24
  LOG_LEVEL: debug
  OTEL_EXPORTER_OTLP_COMPRESSION: gzip
  EGRESS_DENY_HOSTS: '<a> & "b"'
  CANARY_GATEWAY_URL: https://other.example.com
  CANARY_RECEIVER_URL: https://canary.example.com
`;

/** A Kafka of Strimzi whose topics have another prefix. */
const PREFIX_OVERLAY = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: posthorn
resources: [K8S/base]
components: [K8S/components/strimzi]
replicas:
  - { name: posthorn-gateway, count: 3 }
  - { name: posthorn-retry, count: 0 }
configMapGenerator:
  - { name: posthorn-kafka, behavior: merge, literals: [TOPIC_PREFIX=other.] }
patches:
  - target: { kind: KafkaUser }
    patch: |
      - { op: replace, path: /spec/authorization/acls/0/resource/name, value: other. }
  - target: { kind: KafkaUser, name: posthorn-services|posthorn-administer-topics }
    patch: |
      - { op: replace, path: /spec/authorization/acls/1/resource/name, value: other. }
`;

const PREFIX_VALUES = `strimzi: { enabled: true }
gateway: { replicaCount: 3 }
retry: { replicaCount: 0 }
settings: { TOPIC_PREFIX: other. }
`;

const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`;

interface Rendered {
  name: string;
  byKustomize: string;
  byHelm: string;
}

let rendering: Promise<readonly Rendered[]> | undefined;

/** Returns the objects of each installation, rendered by both. They render once, for three checks. */
export async function renderedInstallations(progress: Progress): Promise<readonly Rendered[]> {
  rendering ??= renderAll(progress);
  return rendering;
}

async function renderAll(progress: Progress): Promise<Rendered[]> {
  const scratch = mkdtempSync(join(tmpdir(), 'posthorn-overlay-'));
  try {
    const all: Rendered[] = [];
    for (const { name, kustomize, values } of [...COMMITTED, ...writeOthers(scratch)]) {
      progress(name);
      const byKustomize = await renderedByKustomize(kustomize, progress);
      const text = values === undefined ? '' : readFileSync(resolve(ROOT, values), 'utf8');
      const byHelm = await renderedByHelm(`${text}\n${WITHOUT_HOOKS}`, progress);
      all.push({ name, byKustomize, byHelm });
    }
    return all;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function writeOthers(scratch: string): Installation[] {
  return [
    writeInstallation(scratch, 'other', OTHER_OVERLAY, OTHER_VALUES),
    writeInstallation(scratch, 'prefix', PREFIX_OVERLAY, PREFIX_VALUES),
  ];
}

function writeInstallation(
  scratch: string,
  name: string,
  overlay: string,
  values: string,
): Installation {
  const folder = join(scratch, name);
  mkdirSync(folder);
  const write = (file: string, text: string): string => {
    const path = join(folder, file);
    writeFileSync(path, text.replace('DIGEST', DIGEST));
    return path;
  };
  // kustomize refuses an absolute path.
  const k8s = relative(realpathSync(folder), join(ROOT, 'k8s'));
  write('kustomization.yaml', overlay.replaceAll('K8S', k8s));
  write('steps.yaml', yamlOf(...stepsPatches(24)));
  return { name, kustomize: folder, values: write('values.yaml', values) };
}

/** Returns the objects of Posthorn, without the others of an overlay: a Namespace, and the stores of `local`. */
export function ownObjects(text: string): ReturnType<typeof objectsIn> {
  return objectsIn(text).filter(
    ({ metadata: { labels } }) => labels?.['app.kubernetes.io/part-of'] === 'posthorn',
  );
}

export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  data?: Record<string, string>;
  spec?: Record<string, unknown>;
}

/** Renders a folder, from the root of the repository, as `kubectl apply -k` does: kustomize is the same code. */
async function renderedByKustomize(folder: string, progress: Progress): Promise<string> {
  const kustomize = await builtProgram(KUSTOMIZE, progress);
  return runProgram(kustomize, ['build', resolve(ROOT, folder)]);
}

/**
 * Every opening of the chart, as `helm template` gets it, in the release `posthorn`. Numbers where Kubernetes wants texts, and labels
 * that are in two maps or that the chart sets, are mistakes that it repairs.
 */
const OPEN_VALUES = `image: { tag: 20261127 }
ingress:
  enabled: true
  className: nginx
  annotations: { cert-manager.io/cluster-issuer: letsencrypt }
  hosts: [{ host: a.example.com }, { host: b.example.com, paths: [{ path: /api }] }]
  tls: [{ secretName: hosts-tls, hosts: [a.example.com, b.example.com] }]
serviceAccount: { annotations: { eks.amazonaws.com/role-arn: 'arn:aws:iam::111122223333:role/posthorn' } }
service: { type: LoadBalancer, annotations: { scheme: internal } }
podAnnotations: { vault.hashicorp.com/agent-inject: 'true' }
podLabels: { team: events, app.kubernetes.io/component: other }
commonLabels: { cost-center: 17, release: common, app.kubernetes.io/name: other, posthorn/rollout: other }
imagePullSecrets: [{ name: registry }]
affinity: { podAntiAffinity: {} }
tolerations: [{ key: dedicated, operator: Equal, value: true }]
priorityClassName: high
extraEnv: [{ name: ALL, value: 1000000 }]
extraEnvFrom: [{ secretRef: { name: more } }]
extraVolumes: [{ name: scratch, emptyDir: {} }]
extraVolumeMounts: [{ name: scratch, mountPath: /scratch }]
initContainers:
  - &container
    name: wait
    image: wait:1.0.0
    resources: { requests: { cpu: 10m, memory: 16Mi }, limits: { memory: 16Mi } }
    command: [sleep, 1]
    args: [0.5]
    env: [{ name: DEBUG, value: false }]
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: [ALL] } }
gateway:
  replicas: 3
  terminationGracePeriodSeconds: 60
  resources: { requests: { cpu: 1, memory: 416Mi }, limits: { memory: 536870912 } }
  podLabels: { own: gateway, team: api }
  nodeSelector: { own: gateway }
  serviceAccount: { annotations: { own: gateway } }
  topologySpreadConstraints: [{ topologyKey: rack, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway }]
  extraEnv: [{ name: ONE, value: true }]
  extraContainers: [{ <<: *container, name: sidecar }]
  settings: { MEMORY_MIB: 300, WRONG_KEYS_PER_MINUTE: 50 }
retry: { replicaCount: 0 }
monitoring:
  enabled: true
  rule: { labels: { release: kps } }
  severities: { ticket: info }
  runbookBaseUrl: https://docs.example.com/
  dashboards: { enabled: true }
networkPolicies: { storeNamespaces: [data], storeCidrs: [198.51.100.0/24], ingressNamespaces: [ingress], ingressCidrs: [0.0.0.0/0], monitoringNamespaces: [monitoring], tracingNamespaces: [traces] }
tls:
  kafka: { existingSecret: kafka-client }
  mongodb: { existingSecret: mongodb-client }
  redis: { existingSecret: redis-ca, clientCertificate: false }
settings: { EGRESS_ALLOW_HTTP: true, OTEL_TRACES_SAMPLER_ARG: 0.1, QUOTA_APPS_PER_COMPANY: 1000000, CANARY_PORT: 9200 }
`;

/** A second release in the same namespace, with a Kafka of Strimzi that exists. */
const ACME_VALUES = `strimzi: { existingCluster: shared }
canary: { enabled: true }
operatorWebhook: { enabled: true }
httpRoute: { enabled: true }
settings: { TOPIC_PREFIX: acme., REDIS_PREFIX: 'acme:' }
`;

let releases: Promise<readonly Release[]> | undefined;

interface Release {
  name: string;
  byHelm: string;
}

/** Returns the objects of the releases `posthorn` and `acme`, in this order. They render once. */
export async function renderedReleases(progress: Progress): Promise<readonly Release[]> {
  const sets = ['settings.TOPIC_PARTITIONS=36', 'monitoring.podMonitor.labels.release=kps'];
  releases ??= Promise.all([
    renderedByHelm(OPEN_VALUES, progress, { args: sets.flatMap((each) => ['--set', each]) }),
    renderedByHelm(ACME_VALUES, progress, { release: 'acme' }),
  ]).then(([own, acme]) => [
    { name: 'release posthorn', byHelm: own },
    { name: 'release acme', byHelm: acme },
  ]);
  return releases;
}

/** Returns everything that both tools render, for the checks that look at each object. */
export async function allRendered(progress: Progress): Promise<{ name: string; text: string }[]> {
  const installations = await renderedInstallations(progress);
  return [
    ...installations.flatMap(({ name, byKustomize, byHelm }) => [
      { name: `${name}-kustomize`, text: byKustomize },
      { name: `${name}-helm`, text: byHelm },
    ]),
    ...(await renderedReleases(progress)).map(({ name, byHelm }) => ({ name, text: byHelm })),
  ];
}

/** Throws on a document that is no YAML. */
export function objectsIn(text: string): KubernetesObject[] {
  const documents = parseAllDocuments(text);
  return documents.flatMap((document) => {
    if (document.errors[0]) throw document.errors[0];
    const object = document.toJS() as KubernetesObject | null;
    return object === null ? [] : [object];
  });
}
