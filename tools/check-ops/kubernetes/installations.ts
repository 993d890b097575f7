import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { stepsPatches, yamlOf } from '../../../k8s/scaling-steps.ts';
import { ROOT, runProgram } from '../programs/run-program.ts';
import { builtProgram, HELM, KUSTOMIZE } from '../programs/go-programs.ts';

/** One installation, described for kustomize and for Helm. */
interface Installation {
  name: string;
  /** The folder for kustomize. */
  kustomize: string;
  /** Files of values for Helm, from the root. */
  values: readonly string[];
}

type Progress = (line: string) => void;

const COMMITTED: readonly Installation[] = [
  { name: 'base', kustomize: 'k8s/base', values: [] },
  { name: 'local', kustomize: 'k8s/overlays/local', values: ['deploy/helm/local.yaml'] },
  {
    name: 'production',
    kustomize: 'k8s/overlays/production',
    values: ['deploy/helm/production.yaml'],
  },
];

/**
 * What no overlay of the repository changes: numbers of pods, settings of every ConfigMap, an Ingress, the canary,
 * other steps of autoscaling.
 */
const OTHER_OVERLAY = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: posthorn
resources: [K8S/base]
components: [K8S/components/ingress, K8S/components/autoscaling, K8S/components/monitoring, K8S/components/canary, K8S/components/operator-webhook, K8S/components/egress-proxy]
images:
  - { name: posthorn, newName: other.example.com/team/posthorn, digest: DIGEST }
replicas:
  - { name: posthorn-gateway, count: 3 }
  - { name: posthorn-dispatcher, count: 4 }
  - { name: posthorn-retry, count: 0 }
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
`;

const OTHER_VALUES = `image: { repository: other.example.com/team/posthorn, digest: 'DIGEST' }
gateway: { replicas: 3 }
dispatcher: { replicas: 4 }
retry: { replicas: 0 }
ingress: { enabled: true }
monitoring: { enabled: true }
autoscaling: { enabled: true, dispatcher: { maxReplicas: 24 }, retry: { maxReplicas: 24 } }
canary: { enabled: true, gatewayCidrs: [8.8.8.8/32, 8.8.4.4/32] }
operatorWebhook: { enabled: true, cidrs: [8.8.8.8/32] }
egressProxy: { enabled: true }
settings:
  kafka: { KAFKA_BROKERS: 'a:9092,b:9092', KAFKA_SSL: 'false' }
  topics: { TOPIC_PARTITIONS: '24' }
  process: { LOG_LEVEL: debug }
  tracing: { OTEL_EXPORTER_OTLP_COMPRESSION: gzip }
  egress: { EGRESS_DENY_HOSTS: '<a> & "b"' }
  retry: { CANARY_GATEWAY_URL: 'https://other.example.com', CANARY_RECEIVER_URL: 'https://canary.example.com' }
`;

/** A Kafka of Strimzi whose topics have another prefix. */
const PREFIX_OVERLAY = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: posthorn
resources: [K8S/base]
components: [K8S/components/strimzi]
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
settings:
  kafka: { TOPIC_PREFIX: other. }
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
      all.push({ name, byKustomize, byHelm: await renderedByHelm(values, progress) });
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
  return { name, kustomize: folder, values: [write('values.yaml', values)] };
}

/** Returns the objects of Posthorn, without the others of an overlay: a Namespace, and the stores of `local`. */
export function ownObjects(text: string): ReturnType<typeof objectsIn> {
  return objectsIn(text).filter(
    ({ metadata: { labels } }) => labels?.['app.kubernetes.io/part-of'] === 'posthorn',
  );
}

const CHART = join(ROOT, 'deploy/helm/posthorn');
/** A Helm from `go build` knows no version of Kubernetes, and the chart requires 1.30. */
const KUBE_VERSION = '1.34.3';

export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  spec?: Record<string, unknown>;
}

/** Renders a folder, from the root of the repository, as `kubectl apply -k` does: kustomize is the same code. */
async function renderedByKustomize(folder: string, progress: Progress): Promise<string> {
  const kustomize = await builtProgram(KUSTOMIZE, progress);
  return runProgram(kustomize, ['build', resolve(ROOT, folder)]);
}

/** Renders the chart with these values for the namespace `posthorn`. `lint` refuses what is wrong before a cluster does. */
async function renderedByHelm(valueFiles: readonly string[], progress: Progress): Promise<string> {
  const helm = await builtProgram(HELM, progress);
  const values = valueFiles.flatMap((file) => ['--values', file]);
  const args = ['--namespace', 'posthorn', '--kube-version', KUBE_VERSION, ...values];
  await runProgram(helm, ['lint', '--strict', CHART, ...args]);
  return runProgram(helm, ['template', 'posthorn', CHART, ...args]);
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
