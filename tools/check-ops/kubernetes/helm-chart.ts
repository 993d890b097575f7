import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { renderedFiles } from '../../../k8s/rendered-chart.ts';
import type { OpsCheck } from '../ops-check.ts';
import { GO } from '../programs/go-programs.ts';
import { ROOT } from '../programs/run-program.ts';
import { ownObjects, renderedInstallations, type KubernetesObject } from './installations.ts';

export const HELM_CHART: OpsCheck = {
  name: 'helm-chart',
  shows:
    'k8s/base and k8s/components are what the chart renders; with the same values Helm and kustomize make the same objects.',
  programs: [GO],
  isQuick: false,
  run: async (progress) => {
    requireWritten(await renderedFiles(progress));
    const counts: string[] = [];
    for (const { name, byKustomize, byHelm } of await renderedInstallations(progress)) {
      const objects = ownObjects(byKustomize);
      const different = differencesBetween(objects, ownObjects(byHelm));
      requireKept(ownObjects(byHelm));
      if (different.length > 0) throw new Error([`${name}:`, ...different].join('\n'));
      counts.push(`${name} ${objects.length}`);
    }
    return `the same objects in each: ${counts.join(', ')}`;
  },
};

function requireWritten(files: ReadonlyMap<string, string>): void {
  const outdated = [...files].filter(([path, text]) => {
    const file = join(ROOT, path);
    return !existsSync(file) || readFileSync(file, 'utf8') !== text;
  });
  if (outdated.length === 0) return;
  const paths = outdated.map(([path]) => path).join(', ');
  throw new Error(`\`node k8s/write-generated.ts\` has not written ${paths}`);
}

/** Without it, Helm deletes the settings of pods that a rollout has not replaced yet. */
function requireKept(objects: readonly KubernetesObject[]): void {
  const maps = objects.filter(({ kind }) => kind === 'ConfigMap');
  const dropped = maps.filter(
    ({ metadata }) => metadata.annotations?.['helm.sh/resource-policy'] !== 'keep',
  );
  if (maps.length > 0 && dropped.length === 0) return;
  throw new Error(`Helm would delete ${dropped.map(({ metadata }) => metadata.name).join(', ')}`);
}

/** Returns one line for each difference; none when both render the same objects. */
export function differencesBetween(
  kustomize: readonly KubernetesObject[],
  helm: readonly KubernetesObject[],
): string[] {
  const [left, right] = [byName(kustomize), byName(helm)];
  const names = [...new Set([...left.keys(), ...right.keys()])].sort();
  return names.flatMap((name) => {
    const [one, other] = [left.get(name), right.get(name)];
    if (one === undefined) return [`${name}: only the chart has it`];
    if (other === undefined) return [`${name}: only kustomize has it`];
    return differences(name, one, other);
  });
}

function byName(objects: readonly KubernetesObject[]): Map<string, unknown> {
  return new Map(
    withoutHashes(objects).map((object) => {
      // The overlays name the namespace; with Helm the command does.
      const metadata = {
        ...object.metadata,
        labels: withoutHelm(object.metadata.labels),
        annotations: withoutHelm(object.metadata.annotations),
        namespace: undefined,
      };
      return [`${object.kind} ${object.metadata.name}`, { ...object, metadata }];
    }),
  );
}

/** Names of ConfigMaps, and those of the chart's Jobs, end in a hash: kustomize and Helm calculate different ones. */
function withoutHashes(objects: readonly KubernetesObject[]): readonly KubernetesObject[] {
  const names = objects.flatMap(({ kind, metadata: { name } }) =>
    (kind === 'ConfigMap' && /-[0-9a-z]{10}$/.test(name)) ||
    (kind === 'Job' && /-[0-9a-f]{10}$/.test(name))
      ? [name]
      : [],
  );
  const text = names.reduce(
    (all, name) => all.replaceAll(`"${name}"`, `"${name.slice(0, -11)}"`),
    JSON.stringify(objects),
  );
  return JSON.parse(text) as KubernetesObject[];
}

/** Labels and annotations of Helm mean nothing to the cluster. Returns undefined when no other is left. */
function withoutHelm(entries: Record<string, string> = {}): object | undefined {
  const rest = Object.entries(entries).filter(
    ([name]) => !name.startsWith('helm.sh/') && name !== 'app.kubernetes.io/managed-by',
  );
  return rest.length === 0 ? undefined : Object.fromEntries(rest);
}

function differences(path: string, left: unknown, right: unknown): string[] {
  const isEnv = path.endsWith('.env');
  const [one, other] = isEnv ? [byVariable(left), byVariable(right)] : [left, right];
  if (isDeepStrictEqual(one, other)) return [];
  if (!isObject(one) || !isObject(other)) {
    return [`${path}: ${JSON.stringify(one)} of kustomize, ${JSON.stringify(other)} of the chart`];
  }
  const keys = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  return keys.flatMap((key) => differences(`${path}.${key}`, one[key], other[key]));
}

/** Kustomize moves what it patches to the front. The order of variables has no meaning, as none refers to another. */
function byVariable(env: unknown): unknown {
  if (!Array.isArray(env)) return env;
  const variables = env as { name: string }[];
  return Object.fromEntries(variables.map((variable) => [variable.name, variable]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
