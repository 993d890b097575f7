import { expect, test } from '@jest/globals';
import { CHECKS } from './checks.ts';
import { readCommand } from './command-line.ts';

test('all checks are run unless some are named', () => {
  expect(readCommand([], CHECKS)).toMatchObject({ kind: 'run', checks: CHECKS, isWhole: true });
  const some = readCommand(['s2', 'R4', '--json', 'a.json'], CHECKS);
  expect(some).toMatchObject({ isWhole: false, jsonPath: 'a.json' });
  expect(some.kind === 'run' && some.checks.map(({ id }) => id)).toEqual(['S2', 'R4']);
});

test('an unknown check or option is an error', () => {
  expect(() => readCommand(['S99'], CHECKS)).toThrow('There is no check "S99"');
  expect(() => readCommand(['--fast'], CHECKS)).toThrow('--fast');
});
