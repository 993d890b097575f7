import { isDeepStrictEqual } from 'node:util';
import type { OpsCheck } from '../ops-check.ts';
import { GO } from '../programs/go-programs.ts';
import { ownObjects, renderedInstallations, type KubernetesObject } from './installations.ts';

export const HELM_CHART: OpsCheck = {
  name: 'helm-chart',
  shows: 'Helm and kustomize render the same objects for the same values.',
  programs: [GO],
  isQuick: true,
  run: async (progress) => {
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
    objects.map((object) => {
      const name = nameOf(object);
      // The overlays name the namespace; with Helm the command does.
      const annotations = withoutHelm(object.metadata.annotations);
      const metadata = { ...object.metadata, name, annotations, namespace: undefined };
      return [`${object.kind} ${name}`, { ...object, metadata }];
    }),
  );
}

/**
 * Annotations for Helm mean nothing to the cluster. Returns undefined when all annotations are for Helm.
 */
function withoutHelm(annotations: Record<string, string> = {}): object | undefined {
  const rest = Object.entries(annotations).filter(([name]) => !name.startsWith('helm.sh/'));
  return rest.length === 0 ? undefined : Object.fromEntries(rest);
}

/** The chart's Jobs end in a hash, because Helm deletes no Job before it creates it again. */
function nameOf({ kind, metadata: { name } }: KubernetesObject): string {
  return kind === 'Job' ? name.replace(/-[0-9a-f]{10}$/, '') : name;
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
