import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { findingsOf, type Result } from '../../../faults/report.ts';
import { SHORT } from '../../../faults/rounds.ts';
import { ROOT, runNode } from '../../runner/program.ts';

/** Kept for a look at the logs when a round went wrong. */
const folder = join(ROOT, '.local/faults-of-npm-test');
const WITHIN_MS = 900_000;
/** Only `npm run faults` judges how long that takes, because other suites share the processor here. None at all is wrong. */
const TIMING = 'slow recovery';

/** On a stack of its own, whose stores are frozen and killed. */
describe('The short form of npm run faults', () => {
  let results: Result[];

  beforeAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const jsonPath = join(folder, 'results.json');
    const command = ['faults/run.ts', '--short', '--json', jsonPath, '--results', folder];
    await runNode({ command, onOutput: (text) => process.stderr.write(text) });
    results = JSON.parse(readFileSync(jsonPath, 'utf8')) as Result[];
  }, WITHIN_MS);

  it.each(SHORT)('finds nothing wrong in %s', (name) => {
    const ran = results.filter(({ round }) => round === name);
    expect(ran).toHaveLength(1);
    const findings = ran.flatMap(findingsOf).filter(({ what }) => what !== TIMING);
    expect(findings).toEqual([]);
  });
});
