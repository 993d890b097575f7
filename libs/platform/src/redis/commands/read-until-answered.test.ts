import { expect, it } from '@jest/globals';
import { readUntilAnswered } from './read-until-answered.ts';

const LATE = new Error('Command timed out');

/** Reads with these outcomes, one second each; returns what came of it, and how many reads were made. */
async function readWith(
  outcomes: (Error | string)[],
  statusAfter: (reads: number) => 'ready' | 'close' = () => 'ready',
): Promise<{ result: unknown; reads: number }> {
  let reads = 0;
  const redis = {
    get status() {
      return statusAfter(reads);
    },
  };
  const read = (): Promise<string> => {
    const outcome = outcomes[Math.min(reads, outcomes.length - 1)] ?? '';
    reads += 1;
    return outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome);
  };
  const result: unknown = await readUntilAnswered(redis, read, () => reads * 1_000).catch(
    (error: unknown) => error,
  );
  return { result, reads };
}

it('reads again after replies that were late', async () => {
  expect(await readWith([LATE, LATE, 'reply'])).toEqual({ result: 'reply', reads: 3 });
});

it('fails when replies are late for five seconds', async () => {
  expect(await readWith([LATE])).toEqual({ result: LATE, reads: 5 });
});

it('fails as soon as the connection is lost', async () => {
  const lostAfterTwo = (reads: number): 'ready' | 'close' => (reads < 2 ? 'ready' : 'close');
  expect(await readWith([LATE], lostAfterTwo)).toEqual({ result: LATE, reads: 2 });
});

it('fails at once with an error of Redis', async () => {
  const refused = new Error('OOM command not allowed');
  expect(await readWith([refused, 'reply'])).toEqual({ result: refused, reads: 1 });
});
