import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { podMemoryLimits } from '../../bench/pod-limits.ts';
import { planCapacity } from './capacity.ts';
import { capacityText, readLoad } from './run.ts';
import { CONSTANTS, type Constant, ONE_PROCESS } from './constants.ts';
import { figure } from './sheet.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/scaling.md'), 'utf8');

const constantsOf = (page: string): Constant[] =>
  Object.values<Constant>(CONSTANTS).filter(([, , , source]) => source === page);

describe('docs/scaling.md', () => {
  it('has the figures of one process that the calculator rests on', () => {
    const [section = ''] = page.split(/^## /m).filter((each) => each.startsWith('One process'));
    const missing = constantsOf(ONE_PROCESS).filter(([value]) => !section.includes(figure(value)));
    expect(missing).toEqual([]);
  });

  it('reports more partitions than one installation can have', () => {
    const load = readLoad(['--rate', '100000', '--fan-out', '100']);
    if (load === null) throw new Error('help was not asked for');
    const printed = capacityText(load, planCapacity(load, podMemoryLimits()));
    expect(printed).toContain('more than the 1,000 that one installation can have');
  });
});
