import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { podMemoryLimits } from '../../bench/pod-limits.ts';
import { table } from '../../docs/table.ts';
import { planCapacity } from './capacity.ts';
import { capacityText, readLoad } from './run.ts';
import { CONSTANTS, type Constant } from './constants.ts';
import { figure } from './sheet.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/scaling.md'), 'utf8');

describe('docs/scaling.md', () => {
  it('has the figures that the calculator rests on', () => {
    const rows = Object.values<Constant>(CONSTANTS).map(([value, unit, meaning, source]) => [
      `${figure(value)} ${unit}`,
      meaning,
      source,
    ]);
    expect(page).toContain(table([['Figure', 'Of what', 'Measured or set'], ...rows]));
  });

  it('reports more partitions than one installation can have', () => {
    const load = readLoad(['--rate', '100000', '--fan-out', '100']);
    if (load === null) throw new Error('help was not asked for');
    const printed = capacityText(load, planCapacity(load, podMemoryLimits()));
    expect(printed).toContain('more than the 1,000 that one installation can have');
  });
});
