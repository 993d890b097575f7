import { describe, expect, test } from '@jest/globals';
import { OPS_CHECKS } from './checks.ts';
import type { OpsCheck } from './ops-check.ts';
import { selectChecks } from './select-checks.ts';

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

  test('are quick when they look at rules or Kubernetes objects, so that npm test runs them', () => {
    const quick = selectChecks(['--quick'], OPS_CHECKS).map(({ name }) => name);
    const objects = ['helm-chart', 'kubernetes-schemas', 'pod-security'];
    expect(quick).toEqual(['prometheus-configuration', 'alerts', 'scaling-rules', ...objects]);
  });
});
