import { describe, expect, it } from '@jest/globals';
import { OPTIONS } from './constants.ts';
import { CommandLineError, helpText, readLoad } from './run.ts';

describe('readLoad', () => {
  it('reads the given options, and uses the defaults of the others', () => {
    expect(readLoad(['--rate', '10000', '--fan-out', '3', '--days', '7'])).toEqual({
      messagesPerSecond: 10_000,
      targetsPerMessage: 3,
      days: 7,
      payloadBytes: 1_000,
      responseBytes: 100,
      endpointLatencyMs: 100,
      failureShare: 0.02,
      growth: 2,
      kafkaCopies: 3,
    });
  });

  it.each([
    [[], '--rate must be a number above 0'],
    [['--rate', 'many'], '--rate must be a number above 0'],
    [['--rate', ''], '--rate must be a number above 0'],
    [['--rate', '-1'], "Option '--rate' argument is ambiguous"],
    [['--rate=-1'], '--rate must be a number above 0'],
    [['--rate', 'Infinity'], '--rate must be a number above 0'],
    [['--rate', '1', '--days', '1.5'], '--days must be a whole number of 1 or more'],
    [['--rate', '1', '--failure-share', '1'], '--failure-share must be a share from 0 to below 1'],
    [['--rate', '1', '--growth', '0.5'], '--growth must be a number of 1 or more'],
    [['--rates', '1'], "Unknown option '--rates'"],
  ])('refuses %j and says what is wrong', (args, message) => {
    expect(() => readLoad(args)).toThrow(CommandLineError);
    expect(() => readLoad(args)).toThrow(message);
  });

  it('explains every option', () => {
    expect(readLoad(['--help'])).toBeNull();
    for (const name of Object.keys(OPTIONS)) expect(helpText()).toContain(`--${name} `);
  });
});
