import { describe, expect, test } from '@jest/globals';
import { haveAllPassed, resultLine, summary } from './describe-results.ts';
import type { OpsCheck, OpsOutcome, OpsResult } from './ops-check.ts';

const check: OpsCheck = {
  name: 'drill',
  shows: 'A backup can be restored.',
  programs: [],
  isQuick: false,
  run: () => Promise.resolve(''),
};
const ended = (outcome: OpsOutcome): OpsResult => ({ check, outcome, durationMs: 1_240 });
const passed = ended({ kind: 'passed', saw: '12 documents' });
const failed = ended({ kind: 'failed', reason: 'one is missing' });
const stopped = ended({ kind: 'could-not-run', reason: 'mongodump is missing' });

describe('the result of a check', () => {
  test('says that it ran, what it saw and how long it took', () => {
    expect(resultLine(passed)).toBe('── drill: good, 12 documents (ran 1.2 s)');
    expect(resultLine(failed)).toContain('drill: FAILED\none is missing');
    expect(resultLine(stopped)).toContain('drill: COULD NOT RUN\nmongodump is missing');
  });
});

describe('the exit', () => {
  test('is good only when every check has passed', () => {
    expect(haveAllPassed([passed])).toBe(true);
    expect(haveAllPassed([passed, failed])).toBe(false);
    expect(haveAllPassed([passed, stopped])).toBe(false);
    expect(haveAllPassed([])).toBe(false);
  });
});

describe('the summary', () => {
  test('counts what ran and names what was left out', () => {
    expect(summary([passed, stopped], [])).toBe(
      '2 of 2 operations checks: 1 good, 0 failed, 1 could not run',
    );
    expect(summary([failed], [check])).toBe(
      '1 of 2 operations checks: 0 good, 1 failed, 0 could not run\n' +
        'NOT CHECKED: A backup can be restored. `npm run check:ops -- drill` checks it.',
    );
  });
});
