import { expect, it } from '@jest/globals';
import type { Command } from 'ioredis';
import { readPatiently } from './read-patiently.ts';

const LATE = new Error('Command timed out');

/** Reads with these outcomes; returns what came of it, and how many commands were sent. */
async function readWith(
  outcomes: (Error | string)[],
  statusAfter: (sent: number) => 'ready' | 'close' = () => 'ready',
): Promise<{ result: unknown; sent: number }> {
  let sent = 0;
  const redis = {
    get status() {
      return statusAfter(sent);
    },
    sendCommand(command: Command) {
      const outcome = outcomes[sent];
      sent += 1;
      if (outcome instanceof Error) command.reject(outcome);
      else command.resolve(Buffer.from(outcome ?? ''));
      return command.promise;
    },
  };
  const result: unknown = await readPatiently(redis, 'get', ['key']).catch(
    (error: unknown) => error,
  );
  return { result, sent };
}

it('reads once more when the reply was late', async () => {
  expect(await readWith([LATE, 'reply'])).toEqual({ result: 'reply', sent: 2 });
});

it('fails when the reply was late twice', async () => {
  expect(await readWith([LATE, LATE, 'reply'])).toEqual({ result: LATE, sent: 2 });
});

it('fails as soon as the connection is lost', async () => {
  expect(await readWith([LATE, 'reply'], () => 'close')).toEqual({ result: LATE, sent: 1 });
});

it('fails at once with an error of Redis', async () => {
  const refused = new Error('OOM command not allowed');
  expect(await readWith([refused, 'reply'])).toEqual({ result: refused, sent: 1 });
});
