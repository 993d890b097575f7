import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { generatedFiles } from '../../../k8s/write-generated.ts';
import type { OpsCheck } from '../ops-check.ts';
import { ROOT } from '../programs/run-program.ts';
import { GO } from '../programs/go-programs.ts';
import { ownObjects, renderedInstallations } from './installations.ts';
import type { KubernetesObject } from './rendered.ts';
import { differencesBetween } from './same-objects.ts';

export const HELM_CHART: OpsCheck = {
  name: 'helm-chart',
  shows: 'Helm and kustomize render the same objects for the same values.',
  programs: [GO],
  isQuick: true,
  run: async (progress) => {
    requireUpToDate();
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

function requireUpToDate(): void {
  const stale = [...generatedFiles()].filter(
    ([path, text]) => readFileSync(join(ROOT, path), 'utf8') !== text,
  );
  if (stale.length === 0) return;
  const names = stale.map(([path]) => path).join(', ');
  throw new Error(`Run \`node k8s/write-generated.ts\`; these are out of date: ${names}`);
}
