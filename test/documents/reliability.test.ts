import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { notSentOf, recordsOf } from '../../docs/figures-of-runs.ts';
import { reliabilityText } from '../../docs/write-reliability.ts';

it('docs/reliability.md is up to date with the results of the fault rounds (node docs/write-reliability.ts)', () => {
  const written = readFileSync(join(import.meta.dirname, '../../docs/reliability.md'), 'utf8');
  expect(written).toBe(reliabilityText());
});

it('the messages not sent are a dash for runs that did not write them, and never pass for all runs', () => {
  expect(notSentOf([{}, {}])).toBe('–');
  expect(notSentOf([{ notSent: 0 }])).toBe('0');
  expect(notSentOf([{ notSent: 4 }, { notSent: 3 }])).toBe('7');
  expect(notSentOf([{ notSent: 4 }, {}, {}])).toBe('4 in 1 of 3 runs');
});

it('the records for a delivery are those of the runs that counted them', () => {
  expect(recordsOf([{ records: 5 }, { stored: 5 }])).toBe('–');
  expect(recordsOf([{ stored: 100 }, { stored: 50, records: 51 }])).toBe('1.020');
});
