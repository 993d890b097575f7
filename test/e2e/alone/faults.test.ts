import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { findingsOf, type Result } from '../../../faults/report/result.ts';
import { SHORT } from '../../../faults/short.ts';
import { runNode } from '../../runner/program.ts';

const folder = mkdtempSync(join(tmpdir(), 'posthorn-faults-'));
const WITHIN_MS = 230_000;

/** On a stack of its own, whose stores are frozen and killed. */
describe('The short form of npm run faults', () => {
  let results: Result[];

  beforeAll(async () => {
    const jsonPath = join(folder, 'results.json');
    const command = ['faults/run.ts', '--short', '--json', jsonPath];
    await runNode({ command, onOutput: (text) => process.stderr.write(text) });
    results = JSON.parse(readFileSync(jsonPath, 'utf8')) as Result[];
  }, WITHIN_MS);

  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  it.each(SHORT)('finds nothing wrong in %s', (name) => {
    const ran = results.filter(({ round }) => round === name);
    expect(ran).toHaveLength(1);
    expect(ran.flatMap(findingsOf)).toEqual([]);
  });
});
