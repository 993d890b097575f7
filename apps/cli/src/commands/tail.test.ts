import { expect, it } from '@jest/globals';
import type { ListedMessage } from '@posthorn/client';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { worldOf } from '../../../../test/support/cli/printing-world.ts';
import { Interrupted } from '../failures.ts';
import { clockOf } from '../output.ts';
import { run } from '../program.ts';
import { isWanted, MessageTail, type TailEvent, type TailSource } from './tail.ts';

const START_MS = Date.parse('2026-01-31T09:30:00.000Z');

function message(n: number, atMs: number, status: ListedMessage['status'] = 'pending') {
  return {
    id: `msg_${n}`,
    createdAt: new Date(START_MS + atMs).toISOString(),
    status,
    payload: '{}',
    deliveries: [],
  } as unknown as ListedMessage;
}

/** Messages in memory, in any order; `isDown` fails every call. */
function createSource() {
  const stored: ListedMessage[] = [];
  const state = { nowMs: 0, isDown: false, gets: 0, reads: 0 };
  const failIfDown = (): void => {
    if (state.isDown) throw new Error('no network');
  };
  const source: TailSource = {
    async *list(from) {
      await Promise.resolve();
      failIfDown();
      const newest = stored.filter(({ createdAt }) => createdAt >= from);
      yield* newest.sort((a, b) => b.createdAt.localeCompare(a.createdAt));
    },
    async get(id) {
      await Promise.resolve();
      failIfDown();
      state.gets += 1;
      return stored.find((each) => each.id === id) ?? null;
    },
    async deliveries(id) {
      await Promise.resolve();
      failIfDown();
      state.reads += 1;
      const of = stored.find((each) => each.id === id);
      return (of?.deliveries ?? []).map((each) => ({
        ...each,
        messageId: id,
        nextAttemptAt: null,
        attempts: Array.from({ length: each.attemptCount }, (_, n) => attempt(n + 1)),
      }));
    },
    nowMs: () => state.nowMs,
  };
  const tail = new MessageTail(source, START_MS);
  const poll = async (): Promise<string[]> => (await tail.poll()).map(textOf);
  return { stored, state, poll };
}

type MadeAttempt = Extract<TailEvent, { type: 'attempt' }>['attempt'];

const attempt = (number: number): MadeAttempt =>
  ({ number, outcome: 'http_5xx', statusCode: 503 }) as MadeAttempt;

function textOf(event: TailEvent): string {
  if (event.type === 'gap') return 'gap';
  if (event.type === 'attempt') return `attempt ${event.attempt.number} of ${event.delivery.id}`;
  return `${event.type} ${event.message.id} ${event.message.status}`;
}

/** The deliveries that a list shows of a message to one webhook. */
const attempted = (id: string, attemptCount: number): ListedMessage['deliveries'] => [
  { id, webhookId: 'wh_1', status: 'pending', attemptCount },
];

it('passes each message on once, oldest first, also one that becomes visible late', async () => {
  const { stored, poll } = createSource();
  stored.push(message(0, -1_000), message(2, 2_000), message(1, 1_000));
  expect(await poll()).toEqual(['message msg_1 pending', 'message msg_2 pending']);
  expect(await poll()).toEqual([]);
  stored.push(message(3, 1_500), message(4, 2_500));
  expect(await poll()).toEqual(['message msg_3 pending', 'message msg_4 pending']);
});

it('passes a final status on once, of messages that are not listed any more too', async () => {
  const { stored, state, poll } = createSource();
  const [first, second] = [message(1, 0), message(2, 1, 'delivered')];
  stored.push(first, second);
  expect(await poll()).toEqual(['message msg_1 pending', 'message msg_2 delivered']);
  stored.push(message(3, 60_000));
  await poll();
  first.status = 'exhausted';
  state.nowMs += 5_000;
  expect(await poll()).toEqual(['status msg_1 exhausted']);
  expect(await poll()).toEqual([]);
});

it('asks for a pending message less and less often', async () => {
  const { stored, state, poll } = createSource();
  stored.push(message(1, 0));
  await poll();
  stored.push(message(2, 60_000, 'delivered'));
  for (let second = 1; second <= 600; second += 1) {
    state.nowMs = second * 1_000;
    await poll();
  }
  // 2, 3, 4.5 … 60 s, then each minute.
  expect(state.gets).toBeGreaterThan(10);
  expect(state.gets).toBeLessThan(20);
});

it('loses nothing to a poll that fails', async () => {
  const { stored, state, poll } = createSource();
  stored.push(message(1, 0));
  await poll();
  stored.push(message(2, 1_000));
  state.isDown = true;
  await expect(poll()).rejects.toThrow('no network');
  state.isDown = false;
  expect(await poll()).toEqual(['message msg_2 pending']);
});

it('passes over the oldest of more than it can keep, and says so once', async () => {
  const { stored, poll } = createSource();
  for (let n = 0; n < 5_001; n += 1) stored.push(message(n, n, 'delivered'));
  const events = await poll();
  expect(events).toHaveLength(5_001);
  expect(events.slice(0, 2)).toEqual(['gap', 'message msg_1 delivered']);
  expect(await poll()).toEqual([]);
});

it('passes each attempt on once, before the final status', async () => {
  const { stored, state, poll } = createSource();
  const first = message(1, 0);
  first.deliveries = attempted('dlv_1', 1);
  stored.push(first);
  expect(await poll()).toEqual(['message msg_1 pending', 'attempt 1 of dlv_1']);
  expect(await poll()).toEqual([]);
  first.deliveries = attempted('dlv_1', 3);
  first.status = 'exhausted';
  expect(await poll()).toEqual([
    'attempt 2 of dlv_1',
    'attempt 3 of dlv_1',
    'status msg_1 exhausted',
  ]);
  expect([await poll(), state.reads]).toEqual([[], 2]);
});

it('reads the attempts of a few messages in one poll, and those of the others later', async () => {
  const { stored, state, poll } = createSource();
  for (let n = 0; n < 50; n += 1) {
    const each = message(n, n, 'delivered');
    each.deliveries = attempted(`dlv_${n}`, 1);
    stored.push(each);
  }
  const counts: number[] = [];
  for (let n = 0; n < 4; n += 1) {
    const events = await poll();
    counts.push(events.filter((event) => event.startsWith('attempt')).length);
  }
  expect([counts, state.reads]).toEqual([[20, 20, 10, 0], 50]);
});

it('loses no attempt to a poll that fails', async () => {
  const { stored, state, poll } = createSource();
  const first = message(1, 0);
  stored.push(first);
  await poll();
  first.deliveries = attempted('dlv_1', 1);
  state.isDown = true;
  await expect(poll()).rejects.toThrow('no network');
  state.isDown = false;
  expect(await poll()).toEqual(['attempt 1 of dlv_1']);
});

it('prints what has the status, and attempts to the webhook, of the filter', () => {
  const delivery = { id: 'dlv_1', messageId: 'msg_1', webhookId: 'wh_1', status: 'exhausted' };
  const ofDelivery = { type: 'attempt', delivery, attempt: attempt(1) } as TailEvent;
  const pending: TailEvent = { type: 'message', message: message(1, 0) };
  const exhausted: TailEvent = { type: 'status', message: message(1, 0, 'exhausted') };
  const wanted = (filter: Parameters<typeof isWanted>[1]): boolean[] =>
    [pending, ofDelivery, exhausted].map((event) => isWanted(event, filter));
  expect(wanted({})).toEqual([true, true, true]);
  expect(wanted({ status: 'exhausted' })).toEqual([false, true, true]);
  expect(wanted({ status: 'pending' })).toEqual([true, false, false]);
  expect(wanted({ webhookId: 'wh_2' })).toEqual([true, false, true]);
});

/** Runs the command against an API with one message, until it prints the last word. */
async function tailUntil(last: string, ...args: string[]): Promise<{ got: string[]; out: string }> {
  const at = new Date(START_MS).toISOString();
  const delivery = {
    ...attempted('dlv_1', 1)[0],
    messageId: 'msg_1',
    nextAttemptAt: new Date(START_MS + 5_000).toISOString(),
    attempts: [{ ...attempt(1), durationMs: 84, createdAt: at }],
  };
  const listed = { ...message(1, 0), eventType: 'order.paid', deliveries: attempted('dlv_1', 1) };
  const answers: Record<string, unknown> = {
    '/me': {},
    '/webhooks/uid:a': { id: 'wh_1' },
    '/webhook-messages': [listed],
    '/webhook-messages/msg_1': listed,
    '/webhook-messages/msg_1/deliveries': [delivery],
  };
  const got: string[] = [];
  const server = createServer((request, response) => {
    const [path = '', query = ''] = (request.url ?? '').replace('/api/v1', '').split('?');
    got.push(`${path}?${query.replace(/&?since=[^&]*/, '')}`);
    response.end(JSON.stringify({ success: true, data: answers[path], nextCursor: null }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const interruption = new AbortController();
  const world = { ...worldOf({ POSTHORN_URL: url }), signal: interruption.signal };
  const write = (text: string): void => {
    world.printed.out += text;
    if (text.includes(last)) interruption.abort(new Interrupted());
  };
  const code = await run(['message', 'tail', ...args], { ...world, stdout: { write } });
  server.close();
  expect(code).toBe(0);
  return { got, out: world.printed.out };
}

it('prints a message and its attempt with the status code as lines for people', async () => {
  const { out } = await tailUntil('attempt 1');
  const time = clockOf(START_MS);
  const next = clockOf(START_MS + 5_000);
  expect(out).toBe(
    `${time}  pending    order.paid  msg_1\n` +
      `${time}  503        attempt 1 of wh_1, 84 ms, next at ${next}  msg_1\n`,
  );
});

it('reads the messages of a webhook, of the id that its uid stands for, and of a type', async () => {
  const { got, out } = await tailUntil(
    '"type":"attempt"',
    ...['--webhook', 'uid:a', '--event-type', 'order.paid', '--json'],
  );
  expect(got).toContain('/webhook-messages?webhookId=wh_1&eventType=order.paid&limit=100');
  const events = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string });
  expect(events.map((event) => [Object.keys(event), event.type])).toEqual(
    ['ready', 'message', 'attempt'].map((type) => [['type', 'data'], type]),
  );
});
