import { expect, it, test } from '@jest/globals';
import { Command } from 'ioredis';
import { Registry } from 'prom-client';
import { measureCommands, readPatiently } from './commands.ts';
import type { RedisClient } from './connect.ts';

/** A client whose commands are answered by the test. */
function measured(): { registry: Registry; send: (name: string, index?: number) => Command } {
  const registry = new Registry();
  const fake = { sendCommand: (command: Command): unknown => command.promise };
  const redis = measureCommands(registry, fake as unknown as RedisClient);
  return {
    registry,
    send(name, index) {
      const command = new Command(name, ['key']);
      if (index !== undefined) command.pipelineIndex = index;
      const sent = redis.sendCommand(command) as Promise<unknown>;
      sent.catch(() => undefined);
      return command;
    },
  };
}

const SECONDS = 'posthorn_store_operation_duration_seconds_count{store="redis",operation';

test('Commands are timed by what they do', async () => {
  const { registry, send } = measured();
  for (const name of ['get', 'hset', 'publish', 'info']) send(name).resolve('OK');
  await new Promise(setImmediate);
  const text = await registry.metrics();
  for (const operation of ['read', 'write', 'publish', 'other']) {
    expect(text).toContain(`${SECONDS}="${operation}"} 1`);
  }
});

test.each(['get', 'mget', 'hget', 'hgetall'])('%s is a read', async (name) => {
  const { registry, send } = measured();
  send(name).resolve('OK');
  await new Promise(setImmediate);
  expect(await registry.metrics()).toContain(`${SECONDS}="read"} 1`);
});

test('Of a pipeline only the first command is timed', async () => {
  const { registry, send } = measured();
  for (const index of [0, 1, 2]) send('incrby', index).resolve(1);
  await new Promise(setImmediate);
  expect(await registry.metrics()).toContain(`${SECONDS}="write"} 1`);
});

test('A command that fails counts as an error, and its caller gets the error', async () => {
  const { registry, send } = measured();
  const command = send('get');
  command.reject(new Error('Redis is away'));
  await expect(command.promise).rejects.toThrow('Redis is away');
  const errors = 'posthorn_store_errors_total{store="redis",operation="read"} 1';
  expect(await registry.metrics()).toContain(errors);
});

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
