import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import { type OpenedWebhook, targetListOf } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { countingIds } from '../../../../test/support/samples/sample-message.ts';
import { openedWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import type { TakeTurn } from '../limits/turns.ts';
import { createAcceptMessage, type AcceptMessage } from './accept-message.ts';

const UNAVAILABLE = { status: 503, code: 'unavailable', headers: { 'Retry-After': '2' } };

let batches: Message[][];
let webhooks: OpenedWebhook[];
/** Inserts do not end until this is resolved. */
let gate: Promise<void>;
let openGate: () => void;
let acceptMessage: AcceptMessage;

beforeEach(() => {
  batches = [];
  webhooks = [openedWebhook(1)];
  gate = new Promise((resolve) => (openGate = resolve));
  acceptMessage = createAcceptMessage({
    maxLingerMs: 4,
    targets: { resolve: () => Promise.resolve(targetListOf(webhooks, webhooks[0] ?? null)) },
    outbox: {
      store: async (batch) => {
        batches.push([...batch]);
        await gate;
        return batch.map(() => 'stored');
      },
    },
    deliveries: { insertAll: () => Promise.resolve(new Set()) },
    counts: { add: () => undefined, hasRoom: () => true },
    responses: { seal: () => '' },
    acceptQueueBytes: 67_108_864,
    monotonicMs: () => performance.now(),
    publisherId: () => 'gw_1',
    newId: countingIds(),
    logger: createLogger('test', 'silent'),
  });
});

const acceptOne = (companyId: string, payload = '{}', takeTurn?: TakeTurn) =>
  acceptMessage.accept(
    {
      companyId,
      address: { kind: 'webhook', webhookId: 'wh_1' },
      eventType: null,
      payload,
      requestId: 'request-1',
      idempotency: null,
    },
    takeTurn,
  );
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
    expect(acceptMessage.usedBytes()).toBe(0);
  });

  test('to fewer than 100 does not wait', async () => {
    expect(await acceptTo(99)).toEqual([]);
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
    expect(acceptMessage.usedBytes()).toBeGreaterThan(30_000_000);
    expect(acceptMessage.hasRoom('comp_a', 250_000)).toBe(false);
    expect(acceptMessage.hasRoom('comp_a', 100)).toBe(true);
    expect(acceptMessage.hasRoom('comp_b', 250_000)).toBe(true);
    openGate();
    const refused = (await waiting).filter(({ status }) => status === 'rejected');
    expect(refused).toHaveLength(14);
    expect(refused[0]).toMatchObject({ reason: UNAVAILABLE });
    expect(acceptMessage.usedBytes()).toBe(0);
  });
});
