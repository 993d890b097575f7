import { describe, expect, test } from '@jest/globals';
import { helpOf, readCommand } from './command-line.ts';
import type { Scenario } from './scenario.ts';

const calm: Scenario = {
  summary: 'nothing happens',
  options: {
    seconds: { default: 30, meaning: 'how long' },
    rate: { default: 5, meaning: 'how much' },
    place: { default: 'sea', meaning: 'where' },
    wind: { default: 'none', choices: ['none', 'breeze'], meaning: 'what else' },
  },
  run: () => Promise.resolve({ phases: [], goals: [] }),
};

describe('the command line of the benchmarks', () => {
  test('uses the defaults of a scenario unless an option is given', () => {
    const args = ['calm', '--seconds', '2.5', '--wind', 'breeze', '--place', 'land', '--profile'];
    const command = readCommand(args, { calm });
    expect(command).toMatchObject({ name: 'calm', isProfiling: true, keepsStores: false });
    expect(command?.values).toEqual({ seconds: 2.5, rate: 5, wind: 'breeze', place: 'land' });
    expect(readCommand(['calm', '--keep'], { calm })).toMatchObject({
      values: { wind: 'none', place: 'sea' },
      keepsStores: true,
    });
  });

  test.each([
    [[], 'Name a scenario.'],
    [['storm'], 'There is no scenario "storm".'],
    [['toString'], 'There is no scenario "toString".'],
    [['calm', '--speed', '3'], /Unknown option '--speed'/],
    [['calm', '--rate', '0'], '--rate must be a number above 0.'],
    [['calm', '--rate', 'many'], '--rate must be a number above 0.'],
    [['calm', '--wind', 'storm'], '--wind must be none or breeze.'],
    [['calm', '3'], /Unexpected argument '3'/],
  ])('refuses %j', (args: string[], message: string | RegExp) => {
    expect(() => readCommand(args, { calm })).toThrow(message);
  });

  test.each([[['--help']], [['calm', '--help']]])('shows its help for %j', (args: string[]) => {
    expect(readCommand(args, { calm })).toBeNull();
    expect(helpOf({ calm })).toMatch(/calm: nothing happens\n {2}--seconds +30 {2}how long/);
  });
});
