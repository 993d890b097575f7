import { expect, test } from '@jest/globals';
import { answerLimitMs } from '../round.ts';
import { ROUNDS } from '../rounds.ts';

/** These rounds suspend a service for their whole length. */
const SUSPENDING = 'F7-';

test('a response may take ten seconds and half a second for reading it, and longer only from a suspended service', () => {
  const limits = ROUNDS.flatMap((round) =>
    'runAlone' in round
      ? []
      : round.seconds.map((seconds) => {
          const suspendedMs = round.name.startsWith(SUSPENDING) ? seconds * 1_000 : 0;
          return answerLimitMs(round, seconds) - suspendedMs;
        }),
  );
  expect(new Set(limits)).toEqual(new Set([10_500]));
});
