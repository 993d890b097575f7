import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OpsCheck } from '../ops-check.ts';
import { runProgram } from '../programs/run-program.ts';
import { builtFromSource, GO } from '../programs/go-programs.ts';
import { allRendered, objectsIn } from './installations.ts';

const SOURCE = join(import.meta.dirname, 'pod-security');

export const POD_SECURITY: OpsCheck = {
  name: 'pod-security',
  shows: 'Every pod is admitted by the restricted pod security standard.',
  programs: [GO],
  isQuick: false,
  run: async (progress) => {
    const checker = await builtFromSource('check-pod-security', SOURCE, progress);
    const folder = mkdtempSync(join(tmpdir(), 'posthorn-pods-'));
    try {
      const file = join(folder, 'templates.jsonl');
      await requireRefusal(checker, file);
      const lines = await podTemplates(progress);
      writeFileSync(file, lines.join('\n'));
      const evaluated = Number(await runProgram(checker, ['restricted', file]));
      if (evaluated !== lines.length) throw new Error(`${evaluated} of ${lines.length} evaluated`);
      return `${evaluated} pod templates, by the admission controller of Kubernetes`;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** A privileged container must be refused: shows that the standard is in use. */
async function requireRefusal(checker: string, file: string): Promise<void> {
  const containers = [{ name: 'root', image: 'root', securityContext: { privileged: true } }];
  writeFileSync(file, JSON.stringify({ name: 'root', template: { spec: { containers } } }));
  const admitted = await runProgram(checker, ['restricted', file]).then(
    () => true,
    () => false,
  );
  if (admitted) throw new Error('A privileged container was admitted.');
}

/** One line for each object that runs pods, as both tools render it. */
async function podTemplates(progress: (line: string) => void): Promise<string[]> {
  const lines: string[] = [];
  for (const { name, text } of await allRendered(progress)) {
    for (const { kind, metadata, spec } of objectsIn(text)) {
      if (!['Deployment', 'Job', 'CronJob', 'StatefulSet'].includes(kind)) continue;
      const workload = `${name}: ${kind} ${metadata.name}`;
      const { template } = kind === 'CronJob' ? jobOf(spec) : { template: spec?.template };
      lines.push(JSON.stringify({ name: workload, template }));
    }
  }
  return lines;
}

function jobOf(spec: Record<string, unknown> | undefined): { template: unknown } {
  return (spec?.jobTemplate as { spec: { template: unknown } }).spec;
}
