import { describe, expect, test } from '@jest/globals';
import { OPS_CHECKS, selectChecks, haveAllPassed, resultLine, summary } from './run.ts';
import type { OpsCheck, OpsOutcome, OpsResult } from './ops-check.ts';

const check = (name: string, isQuick: boolean): OpsCheck => ({
  name,
  shows: 'It holds.',
  programs: [],
  isQuick,
  run: () => Promise.resolve('1 file'),
});
const rules = check('rules', true);
const drill = check('drill', false);
const all = [rules, drill];

describe('npm run check:ops', () => {
  test('runs every check without arguments', () => {
    expect(selectChecks([], all)).toEqual([rules, drill]);
  });

  test('runs the named checks, or the quick ones', () => {
    expect(selectChecks(['drill'], all)).toEqual([drill]);
    expect(selectChecks(['--quick'], all)).toEqual([rules]);
  });

  test('refuses a name that no check has', () => {
    expect(() => selectChecks(['drills'], all)).toThrow(
      'There is no check drills. Known: rules, drill',
    );
    expect(() => selectChecks(['--watch'], all)).toThrow('--watch');
  });
});

describe('the checks', () => {
  test('have names of their own', () => {
    const names = OPS_CHECKS.map(({ name }) => name);
    expect([...new Set(names)]).toEqual(names);
  });

  test('are quick when they check rules of Prometheus, so that npm test runs them', () => {
    const quick = selectChecks(['--quick'], OPS_CHECKS).map(({ name }) => name);
    expect(quick).toEqual(['prometheus-configuration', 'alerts', 'scaling-rules']);
  });
});

const ended = (outcome: OpsOutcome): OpsResult => ({ check: drill, outcome, durationMs: 1_240 });
const passed = ended({ kind: 'passed', saw: '12 documents' });
const failed = ended({ kind: 'failed', reason: 'one is missing' });
const stopped = ended({ kind: 'could-not-run', reason: 'mongodump is missing' });

describe('the result of a check', () => {
  test('shows the outcome, the observation and the duration', () => {
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
  test('counts the checks that ran and names the others', () => {
    expect(summary([passed, stopped], [])).toBe(
      '2 of 2 operations checks: 1 good, 0 failed, 1 could not run',
    );
    expect(summary([failed], [drill])).toBe(
      '1 of 2 operations checks: 0 good, 1 failed, 0 could not run\n' +
        'NOT CHECKED: It holds. `npm run check:ops -- drill` checks it.',
    );
  });
});
