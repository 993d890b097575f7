import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OpsCheck } from './ops-check.ts';
import { ACTIONLINT, builtProgram, GO } from './programs/go-programs.ts';
import { ROOT, runProgram } from './programs/run-program.ts';

/** Must be refused: an output that no step has, and a job that no other one can need. */
const WRONG = `on: push
jobs:
  one:
    needs: [missing]
    runs-on: ubuntu-24.04
    steps:
      - run: echo "\${{ steps.none.outputs.value }}"
`;

/** Others may be installed on a machine, and would find more there than elsewhere. */
const WITHOUT_HELPERS = ['-shellcheck=', '-pyflakes='];

export const WORKFLOWS: OpsCheck = {
  name: 'workflows',
  shows: 'GitHub accepts the workflows that check and release.',
  programs: [GO],
  isQuick: false,
  run: async (progress) => {
    const actionlint = await builtProgram(ACTIONLINT, progress);
    await requireRefusal(actionlint);
    const files = globSync('.github/workflows/*.yaml', { cwd: ROOT }).sort();
    await runProgram(actionlint, [...WITHOUT_HELPERS, ...files]);
    return files.join(', ');
  },
};

async function requireRefusal(actionlint: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-workflow-'));
  try {
    const file = join(folder, 'wrong.yaml');
    writeFileSync(file, WRONG);
    const accepted = await runProgram(actionlint, [...WITHOUT_HELPERS, file]).then(
      () => true,
      () => false,
    );
    if (accepted) throw new Error('A wrong workflow was accepted.');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
