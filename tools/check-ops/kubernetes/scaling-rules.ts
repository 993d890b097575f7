import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OpsCheck } from '../ops-check.ts';
import { ROOT, runProgram } from '../programs/run-program.ts';
import { PROMTOOL } from '../prometheus/programs.ts';

const RULES = 'deploy/prometheus/scaling.yaml';

export const SCALING_RULES: OpsCheck = {
  name: 'scaling-rules',
  shows: 'The rules for autoscaling give numbers of pods that divide the partitions.',
  programs: [PROMTOOL],
  isQuick: true,
  run: async () => {
    await runProgram('promtool', ['check', 'rules', '--lint-fatal', RULES]);
    await runProgram('promtool', ['test', 'rules', 'deploy/prometheus/scaling.test.yaml']);
    const recorded = namesIn(RULES, /record: (\S+)/g);
    const scalers = globSync('k8s/components/autoscaling/*.yaml', { cwd: ROOT });
    const queried = scalers.flatMap((file) => namesIn(file, /query: max\((\S+?)\{/g));
    const unknown = queried.filter((name) => !recorded.includes(name));
    if (unknown.length > 0) throw new Error(`${RULES} does not record ${unknown.join(', ')}`);
    return `${recorded.length} rules, ${queried.length} of them scale`;
  },
};

function namesIn(file: string, pattern: RegExp): string[] {
  return [...readFileSync(join(ROOT, file), 'utf8').matchAll(pattern)].map(([, name = '']) => name);
}
