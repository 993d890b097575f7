import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import { type OpenedWebhook, targetListOf } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { InsertOutcome } from '@posthorn/platform/mongo/messages/messages.ts';
import { StoreUnavailableError } from '@posthorn/platform/service/errors.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { countingIds } from '../../../../test/support/samples/sample-message.ts';
import { openedWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import type { NextSlice } from '../limits/slices.ts';
import {
  type AcceptMessages,
  type AcceptResult,
  createAcceptMessages,
  type NewMessage,
} from './accept-message.ts';

const UNAVAILABLE = { status: 503, code: 'unavailable', headers: { 'Retry-After': '2' } };

const UNKNOWN_APP = { kind: 'app', appId: 'app_none', eventType: null } as const;

let batches: Message[][];
let lookUps: number;
let webhooks: OpenedWebhook[];
/** Inserts do not end until this is resolved. */
let gate: Promise<void>;
let openGate: () => void;
/** Look-ups do not end until this is resolved. */
let looking: Promise<void>;
/** Look-ups of apps fail as when MongoDB is away. */
let failLookUps: boolean;
/** What becomes of the messages of each insert. */
let outcomeOf: (message: Message, insert: number) => InsertOutcome;
let acceptMessages: AcceptMessages;

beforeEach(() => {
  [batches, lookUps] = [[], 0];
  outcomeOf = () => 'stored';
  failLookUps = false;
  looking = Promise.resolve();
  webhooks = [openedWebhook(1)];
  gate = new Promise((resolve) => (openGate = resolve));
  acceptMessages = createAcceptMessages({
    checks: { check: () => Promise.reject(new Error('no project checks payloads')) },
    nowMs: () => 1_000,
    retentionMs: () => 30 * 86_400_000,
    maxLingerMs: 4,
    targets: {
      candidatesOf: async (_companyId, address) => {
        lookUps += 1;
        await looking;
        if (failLookUps && address.kind === 'app') {
          throw new StoreUnavailableError('MongoDB is away');
        }
        return address === UNKNOWN_APP ? null : targetListOf(webhooks, webhooks[0] ?? null);
      },
    },
    outbox: {
      whenPublished: () => {
        throw new Error('not in order');
      },
      store: async (batch) => {
        batches.push([...batch]);
        await gate;
        const insert = batches.length;
        return batch.map((message) => outcomeOf(message, insert));
      },
    },
    counts: { add: () => undefined, hasRoom: () => true },
    responses: { seal: () => '' },
    acceptQueueBytes: 67_108_864,
    monotonicMs: () => performance.now(),
    publisherId: () => 'gw_1',
    newId: countingIds(),
    logger: createLogger('test', 'silent'),
  });
});

const requestOf = (companyId: string, payload = '{}'): NewMessage => ({
  companyId,
  address: { kind: 'webhook', webhookId: 'wh_1' },
  eventType: null,
  payload,
  requestId: 'request-1',
  idempotency: null,
});

async function acceptOne(companyId: string, payload = '{}', nextSlice?: NextSlice) {
  const [result] = await acceptMessages.accept([requestOf(companyId, payload)], { nextSlice });
  if (result?.kind === 'failed') throw result.error;
  return result;
}
const acceptMany = (count: number, companyId: string, payload?: string) =>
  Promise.allSettled(Array.from({ length: count }, () => acceptOne(companyId, payload)));
const countOf = (batch: readonly Message[] | undefined, company: string) =>
  batch?.filter(({ companyId }) => companyId === company).length;

describe('a batch of messages', () => {
  test('takes one message of each company in turn, whoever came first', async () => {
    const waiting = [acceptMany(1_000, 'comp_a'), acceptMany(50, 'comp_b')];
    openGate();
    await Promise.all(waiting);
    const [first, second] = batches;
    expect([countOf(first, 'comp_a'), countOf(first, 'comp_b')]).toEqual([1, 0]);
    expect([countOf(second, 'comp_a'), countOf(second, 'comp_b')]).toEqual([150, 50]);
  });

  test('is filled by a company that waits alone', async () => {
    const waiting = acceptMany(401, 'comp_a');
    openGate();
    await waiting;
    expect(batches.map(({ length }) => length)).toEqual([1, 200, 200]);
  });

  test('holds fewer messages when they go to many webhooks', async () => {
    webhooks = Array.from({ length: 1_000 }, (_, n) => openedWebhook(n));
    const waiting = acceptMany(40, 'comp_a');
    openGate();
    await waiting;
    expect(Math.max(...batches.map(({ length }) => length))).toBe(19);
  });
});

describe('a message to many webhooks', () => {
  const acceptTo = async (count: number): Promise<number[]> => {
    webhooks = Array.from({ length: count }, (_, n) => openedWebhook(n));
    openGate();
    const charged: number[] = [];
    await acceptOne('comp_a', '{}', (laterMs = 0) => Promise.resolve(void charged.push(laterMs)));
    return charged;
  };

  test('takes a turn of its company, and is charged for its publication', async () => {
    expect(await acceptTo(1_000)).toEqual([25]);
  });

  test('is not stored when its request ends before its turn', async () => {
    webhooks = Array.from({ length: 100 }, (_, n) => openedWebhook(n));
    const ended = new Error('ended');
    await expect(acceptOne('comp_a', '{}', () => Promise.reject(ended))).rejects.toBe(ended);
    expect(batches).toEqual([]);
    expect(acceptMessages.usedBytes()).toBe(0);
  });

  test('a message to fewer than 100 webhooks does not wait', async () => {
    expect(await acceptTo(99)).toEqual([]);
  });
});

describe('several messages of one call', () => {
  const requests = (count: number) =>
    Array.from({ length: count }, (_, n) => requestOf('comp_a', `{"n":${n}}`));
  const kindsOf = (results: readonly AcceptResult[]) => Map.groupBy(results, ({ kind }) => kind);

  test('messages in order: behind one that must be sent again nothing is stored', async () => {
    outcomeOf = (_message, insert) => (insert === 1 ? 'refused' : 'stored');
    openGate();
    const results = await acceptMessages.accept(requests(500), { isInOrder: true });
    expect(kindsOf(results).get('failed')).toHaveLength(500);
    expect(batches).toHaveLength(1);
  });

  test('messages in order: one for nobody is refused alone, and one that cannot be looked up ends the call', async () => {
    openGate();
    const unknown = { ...requestOf('comp_a'), address: UNKNOWN_APP };
    const some = await acceptMessages.accept([...requests(2), unknown, ...requests(2)], {
      isInOrder: true,
    });
    expect(some.map(({ kind }) => kind)).toEqual([
      ...['accepted', 'accepted', 'failed', 'accepted', 'accepted'],
    ]);
    failLookUps = true;
    const address = { kind: 'app', appId: 'app_1', eventType: null } as const;
    const others = await acceptMessages.accept(
      [...requests(2), { ...requestOf('comp_a'), address }, ...requests(2)],
      { isInOrder: true },
    );
    expect(others.map(({ kind }) => kind)).toEqual([
      ...['accepted', 'accepted', 'failed', 'failed', 'failed'],
    ]);
  });

  test('are stored in their order, with ids that grow', async () => {
    openGate();
    const results = await acceptMessages.accept(requests(1_000));
    const stored = batches.flat();
    expect(stored.map(({ payload }) => payload)).toEqual(requests(1_000).map((r) => r.payload));
    expect(stored.map(({ id }) => id)).toEqual(stored.map(({ id }) => id).sort());
    expect(results.map((each) => each.kind === 'accepted' && each.message)).toEqual(stored);
  });

  test('take a turn for each hundred, and are charged for what follows', async () => {
    openGate();
    const charged: number[] = [];
    const nextSlice = (laterMs = 0) => Promise.resolve(void charged.push(laterMs));
    await acceptMessages.accept(requests(250), { nextSlice });
    expect(charged).toEqual([10, 10, 5]);
  });

  test('share a look-up of their address', async () => {
    openGate();
    await acceptMessages.accept(requests(200));
    expect(lookUps).toBe(2);
  });

  test('wait for the store 400 at a time, so that other requests of their company find room', async () => {
    const all = acceptMessages.accept(requests(1_000));
    await eventually('the first insert', () => batches.length > 0);
    await new Promise(setImmediate);
    expect(acceptMessages.usedBytes()).toBeLessThan(500 * 4_200);
    openGate();
    expect(kindsOf(await all).get('accepted')).toHaveLength(1_000);
    expect(acceptMessages.usedBytes()).toBe(0);
  });

  test('fail one by one when their app is unknown, and are stored otherwise', async () => {
    openGate();
    const unknown = { ...requestOf('comp_a'), address: UNKNOWN_APP };
    const [first, second, third] = await acceptMessages.accept([
      requestOf('comp_a'),
      unknown,
      requestOf('comp_a'),
    ]);
    expect([first?.kind, third?.kind]).toEqual(['accepted', 'accepted']);
    expect(second).toMatchObject({ kind: 'failed', error: { code: 'not_found' } });
    expect(batches.flat()).toHaveLength(2);
  });

  test('are 503 from the deadline on, unless they are stored, and none is stored later', async () => {
    const deadline = new AbortController();
    const all = acceptMessages.accept(requests(1_000), { deadline: deadline.signal });
    await eventually('the first insert', () => batches.length > 0);
    deadline.abort();
    const results = await all;
    expect(results).toHaveLength(1_000);
    for (const result of results) expect(result).toMatchObject({ error: UNAVAILABLE });
    openGate();
    await acceptMessages.idle();
    expect(batches.flat().length).toBeLessThanOrEqual(500);
  });

  test('are not stored when their look-up ends after the deadline', async () => {
    openGate();
    const { promise, resolve: endLookUp } = Promise.withResolvers<undefined>();
    looking = promise;
    const deadline = new AbortController();
    const all = acceptMessages.accept(requests(200), { deadline: deadline.signal });
    await eventually('the look-up', () => lookUps > 0);
    deadline.abort();
    for (const result of await all) expect(result).toMatchObject({ error: UNAVAILABLE });
    endLookUp(undefined);
    await new Promise(setImmediate);
    await acceptMessages.idle();
    expect([batches, acceptMessages.usedBytes()]).toEqual([[], 0]);
  });

  test('are not stored when they get room after the deadline', async () => {
    const deadline = new AbortController();
    const large = Array.from({ length: 100 }, () => requestOf('comp_a', 'x'.repeat(1_000_000)));
    const all = acceptMessages.accept(large, { deadline: deadline.signal });
    await eventually('the insert', () => batches.length > 0);
    await new Promise(setImmediate);
    const begun = Math.floor(acceptMessages.usedBytes() / 2_000_000);
    deadline.abort();
    await all;
    openGate();
    await eventually('their end', () => acceptMessages.usedBytes() === 0);
    await acceptMessages.idle();
    expect(batches.flat().length).toBeLessThanOrEqual(begun + 1);
  });

  test('are stored up to the turn that fails', async () => {
    openGate();
    const ended = new Error('ended');
    let turns = 0;
    const nextSlice = () => (++turns > 2 ? Promise.reject(ended) : Promise.resolve());
    const results = await acceptMessages.accept(requests(300), { nextSlice });
    expect(kindsOf(results).get('accepted')).toHaveLength(200);
    expect(results.slice(200)).toEqual(Array(100).fill({ kind: 'failed', error: ended }));
    expect(batches.flat()).toHaveLength(200);
  });

  test('make room for each other where the memory of their company is full', async () => {
    openGate();
    const large = Array.from({ length: 100 }, () => requestOf('comp_a', 'x'.repeat(1_000_000)));
    expect(kindsOf(await acceptMessages.accept(large)).get('accepted')).toHaveLength(100);
  });

  test('are 503 when other requests of their company take all of its memory', async () => {
    const waiting = acceptMany(16, 'comp_a', 'x'.repeat(1_000_000));
    await eventually('the insert', () => batches.length > 0);
    const large = [requestOf('comp_a', 'x'.repeat(1_000_000)), requestOf('comp_a')];
    for (const result of await acceptMessages.accept(large))
      expect(result).toMatchObject({ kind: 'failed', error: UNAVAILABLE });
    openGate();
    await waiting;
  });
});

describe('the accept queue', () => {
  test('holds 5,000 requests, half of them at most of a company that waits alone', async () => {
    const waiting = acceptMany(2_500, 'comp_a');
    await expect(acceptOne('comp_a')).rejects.toMatchObject(UNAVAILABLE);
    const other = acceptOne('comp_b');
    openGate();
    expect((await waiting).every(({ status }) => status === 'fulfilled')).toBe(true);
    expect(await other).toMatchObject({ message: { payload: '{}' } });
    expect(batches.flat()).toHaveLength(2_501);
  });

  test('is bounded in bytes, half of them at most of a company that waits alone', async () => {
    const waiting = acceptMany(80, 'comp_a', `"${'x'.repeat(250_000)}"`);
    await eventually('the insert', () => batches.length > 0);
    expect(acceptMessages.usedBytes()).toBeGreaterThan(30_000_000);
    expect(acceptMessages.hasRoom('comp_a', 250_000)).toBe(false);
    expect(acceptMessages.hasRoom('comp_a', 100)).toBe(true);
    expect(acceptMessages.hasRoom('comp_b', 250_000)).toBe(true);
    openGate();
    const refused = (await waiting).filter(({ status }) => status === 'rejected');
    expect(refused).toHaveLength(14);
    expect(refused[0]).toMatchObject({ reason: UNAVAILABLE });
    expect(acceptMessages.usedBytes()).toBe(0);
  });
});
