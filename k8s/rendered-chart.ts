import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { builtProgram, HELM } from '../tools/check-ops/programs/go-programs.ts';
import { runProgram } from '../tools/check-ops/programs/run-program.ts';

type Progress = (line: string) => void;

const CHART = join(import.meta.dirname, '../deploy/helm/posthorn');
/** A Helm from `go build` knows no version of Kubernetes, and the chart requires 1.30. */
const KUBE_VERSION = '1.34.3';

/** kubectl knows no hooks of Helm, so in k8s/base the Jobs are plain ones. */
export const WITHOUT_HOOKS = 'setup: { hooks: false }\n';

/** What the components add; their values are examples that an overlay patches. */
const COMPONENT_VALUES = `${WITHOUT_HOOKS}autoscaling: { enabled: true }
monitoring: { enabled: true }
httpRoute: { enabled: true }
ingress:
  enabled: true
  className: nginx
  tls: [{ hosts: [posthorn.example.com], secretName: posthorn-gateway-tls }]
canary: { enabled: true }
operatorWebhook: { enabled: true }
egressProxy: { enabled: true }
oidc: { enabled: true, cidrs: [203.0.113.40/32] }
strimzi: { enabled: true }
`;

/** Template of the chart → file of k8s/components. */
const COMPONENTS = new Map([
  ['autoscaling', 'autoscaling/autoscaling'],
  ['canary', 'canary/canary'],
  ['egress-proxy', 'egress-proxy/network-policy'],
  ['http-route', 'http-route/http-route'],
  ['ingress', 'ingress/ingress'],
  ['oidc', 'oidc/network-policy'],
  ['operator-webhook', 'operator-webhook/network-policy'],
  ['pod-monitor', 'monitoring/pod-monitor'],
  ['prometheus-rule', 'monitoring/prometheus-rule'],
  ['strimzi-kafka', 'strimzi/kafka'],
  ['strimzi-network-policy', 'strimzi/network-policy'],
  ['strimzi-users', 'strimzi/users'],
]);

const HEADING = '# Written by k8s/write-generated.ts from deploy/helm/posthorn.\n';

interface RenderOptions {
  release?: string;
  args?: readonly string[];
  /** A copy of the chart has it. */
  version?: string;
  /** The chart is below another one by this name, and the values are those of the other one. */
  alias?: string;
}

/** Returns what Helm renders with these values. `lint` refuses what is wrong before a cluster does. */
export async function renderedByHelm(
  values: string,
  progress: Progress,
  { release = 'posthorn', args = [], version, alias }: RenderOptions = {},
): Promise<string> {
  const helm = await builtProgram(HELM, progress);
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-values-'));
  try {
    const file = join(folder, 'values.yaml');
    writeFileSync(file, values);
    const own = version === undefined ? CHART : copiedChart(folder, version);
    const chart = alias === undefined ? own : parentChart(folder, alias);
    const options = ['--namespace', 'posthorn', '--kube-version', KUBE_VERSION];
    const all = [...options, '--values', file, ...args];
    await runProgram(helm, ['lint', '--strict', chart, ...all]);
    return await runProgram(helm, ['template', release, chart, ...all]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The usual condition of a dependency: `enabled` of its values. */
function parentChart(folder: string, alias: string): string {
  const chart = join(folder, 'platform');
  cpSync(CHART, join(chart, 'charts/posthorn'), { recursive: true });
  mkdirSync(join(chart, 'templates'));
  const { version } = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8')) as { version: string };
  const dependency = { name: 'posthorn', version, repository: '', condition: `${alias}.enabled` };
  const dependencies = [{ ...dependency, ...(alias !== 'posthorn' && { alias }) }];
  const fields = { apiVersion: 'v2', name: 'platform', version: '1.0.0', icon: 'file:icon' };
  writeFileSync(join(chart, 'Chart.yaml'), stringify({ ...fields, dependencies }));
  return chart;
}

function copiedChart(folder: string, version: string): string {
  const chart = join(folder, 'posthorn');
  cpSync(CHART, chart, { recursive: true });
  const file = join(chart, 'Chart.yaml');
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replaceAll(/^(version|appVersion): .+$/gm, `$1: ${version}`));
  return chart;
}

/** Returns the files of k8s/base and k8s/components that the chart renders, by path from the root. */
export async function renderedFiles(progress: Progress): Promise<Map<string, string>> {
  const base = bySource(await renderedByHelm(WITHOUT_HOOKS, progress));
  const withComponents = bySource(await renderedByHelm(COMPONENT_VALUES, progress));
  const files = new Map<string, string>();
  const configMaps = base.get('config-maps') ?? '';
  base.delete('config-maps');
  files.set('k8s/base/kustomization.yaml', kustomization([...base.keys()], configMaps));
  for (const [name, text] of base) files.set(`k8s/base/${name}.yaml`, HEADING + text);
  for (const [name, file] of COMPONENTS) {
    const text = withComponents.get(name);
    if (text === undefined) throw new Error(`The chart renders no templates/${name}.yaml`);
    files.set(`k8s/components/${file}.yaml`, HEADING + text);
  }
  return files;
}

/** Splits what Helm renders by template, and leaves out what only a release of Helm has: its labels, and hashes at the end of names. */
function bySource(rendered: string): Map<string, string> {
  const text = rendered
    .replaceAll(/^ +(helm\.sh\/[a-z-]+|app\.kubernetes\.io\/managed-by): .*\n/gm, '')
    .replaceAll(/\b(posthorn-[a-z-]+)-[0-9a-f]{10}\b/g, '$1')
    .replaceAll(/ +$/gm, '');
  const parts = text.split(/^---\n/m).flatMap((part) => {
    const found = /^# Source: posthorn\/templates\/(.*)\.yaml\n([^]*)$/.exec(part);
    return found ? [{ source: found[1] ?? '', document: `${(found[2] ?? '').trimEnd()}\n` }] : [];
  });
  const sources = [...new Set(parts.map(({ source }) => source))].sort();
  return new Map(
    sources.map((source) => {
      const own = parts.filter((part) => part.source === source).map(({ document }) => document);
      // Helm puts the comment above a loop at the end, as a document of its own.
      const comments = own.filter((document) => !document.includes('kind: '));
      const objects = own.filter((document) => document.includes('kind: '));
      return [source, comments.join('') + objects.join('---\n')];
    }),
  );
}

/** The ConfigMaps are generated by kustomize, whose hash at the end of their names causes a rollout after a change. */
function kustomization(resources: readonly string[], configMaps: string): string {
  const maps = parseAllDocuments(configMaps).map(
    (document) =>
      document.toJS() as {
        metadata: {
          name: string;
          labels: Record<string, string>;
          annotations: Record<string, string>;
        };
        data: Record<string, string>;
      },
  );
  const content = {
    ...(parse('apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization') as object),
    resources: resources.map((name) => `${name}.yaml`),
    configMapGenerator: maps.map(({ metadata: { name, labels, annotations }, data }) => ({
      name,
      literals: Object.entries(data).map(([setting, value]) => `${setting}=${value}`),
      options: { labels, annotations },
    })),
  };
  const hint = `# Overlays change single settings with \`behavior: merge\`, and the image with \`images\`.\n`;
  return HEADING + hint + stringify(content, { lineWidth: 0, aliasDuplicateObjects: false });
}
