import { describe, expect, test } from '@jest/globals';
import { helpOf, listOf, readCommand } from './command-line.ts';
import type { LoneRound } from './round.ts';

function round(name: string): LoneRound {
  const words = { summary: `what ${name} does`, promise: `what ${name} holds` };
  return { name, ...words, seconds: [30, 90], runAlone: () => Promise.resolve([]) };
}

const suite = { rounds: ['F1', 'F5-frozen', 'F5-killed', 'F50'].map(round), short: ['F1'] };

function roundsOf(...args: string[]): string[] {
  const command = readCommand(args, suite);
  return command.kind === 'run' ? command.rounds.map(({ name }) => name) : [];
}

describe('the command line of the faults', () => {
  test('runs all rounds once by default', () => {
    expect(roundsOf()).toEqual(['F1', 'F5-frozen', 'F5-killed', 'F50']);
    expect(readCommand([], suite)).toMatchObject({ rate: 100, repetitions: 1 });
  });

  test('selects rounds by name and by the beginning of names, each once', () => {
    expect(roundsOf('f5')).toEqual(['F5-frozen', 'F5-killed']);
    expect(roundsOf('F5-killed', 'F5', 'F1')).toEqual(['F5-killed', 'F5-frozen', 'F1']);
  });

  test('reads the length, the rate and the number of repetitions', () => {
    const numbers = ['--seconds', '300', '--rate', '900', '--rounds', '3', '--seed', '7'];
    const args = ['F5', ...numbers, '--sigterm', '--against', 'v1'];
    expect(readCommand(args, suite)).toMatchObject({
      seconds: 300,
      rate: 900,
      repetitions: 3,
      seed: 7,
      hasSigterm: true,
      against: 'v1',
    });
  });

  test('has a short form', () => {
    expect(roundsOf('--short')).toEqual(['F1']);
    expect(readCommand(['--short'], suite)).toMatchObject({ seconds: 5, rate: 25 });
  });

  test.each([
    [['F9'], 'There is no round "F9".'],
    [['--rounds', '0'], '--rounds must be a number above 0, but it is "0".'],
    [['--rounds', '1.5'], '--rounds must be a whole number, but it is "1.5".'],
    [['--rate', 'many'], '--rate must be a number above 0, but it is "many".'],
    [['--seconds', ''], '--seconds must be a number above 0, but it is "".'],
    [['--speed', '3'], /Unknown option '--speed'/],
    [['F1', '--short'], '--short names its rounds itself'],
  ])('refuses %j', (args: string[], message: string | RegExp) => {
    expect(() => readCommand(args, suite)).toThrow(message);
  });

  test('shows its help and its rounds', () => {
    expect(readCommand(['-h'], suite)).toEqual({ kind: 'help' });
    expect(readCommand(['--list'], suite)).toEqual({ kind: 'list' });
    expect(helpOf(suite)).toMatch(/\n {2}F5-frozen +what F5-frozen does\n/);
    expect(listOf(suite.rounds)).toContain('F1 (30, 90 s): what F1 does\n  holds: what F1 holds');
  });
});
