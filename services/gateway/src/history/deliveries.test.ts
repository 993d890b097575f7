import { describe, expect, test } from '@jest/globals';
import { unattemptedDelivery } from '@posthorn/domain/delivery/settlement.ts';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { Delivery } from '@posthorn/domain/delivery/delivery.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { listDeliveries, readDelivery, type ReadStores } from './deliveries.ts';
import { findById, type FindByIdDeps } from './find-by-id.ts';
import { readMessage } from './messages.ts';

const message = { ...sampleMessage('msg_1'), targets: ['wh_1', 'wh_2', 'wh_3'] };

const deps = {
  messages: {
    findOne: (_company: string, id: string) => Promise.resolve(id === 'msg_1' ? message : null),
    outlinesAt: () => ({ [Symbol.asyncIterator]: () => [].values() as never }),
  },
  deliveries: { findMany: () => Promise.resolve([]), outlinesOf: () => Promise.resolve([]) },
  webhooks: {
    findOne: () => Promise.resolve(null),
    findTarget: () => Promise.resolve(null),
    cancelBeforeOf: () => Promise.resolve(new Map()),
  },
};

const nextSlice = () => Promise.resolve();

const page = async (limit: number, cursor?: string) => {
  const query = { companyId: 'comp_a', messageId: 'msg_1', limit, cursor };
  const { deliveries, nextCursor } = await listDeliveries(deps, query);
  return [deliveries.map(({ source }) => source.webhookId), nextCursor];
};

test('pages list the deliveries of a message, newest webhook first', async () => {
  expect(await page(2)).toEqual([['wh_3', 'wh_2'], 'wh_2']);
  expect(await page(2, 'wh_2')).toEqual([['wh_1'], null]);
});

test('the last page has no cursor even if it is full', async () => {
  expect(await page(3)).toEqual([['wh_3', 'wh_2', 'wh_1'], null]);
});

test('a page ends when its responses have a megabyte, and the next one goes on behind it', async () => {
  const targets = Array.from({ length: 12 }, (_, n) => `wh_${String(n).padStart(2, '0')}`);
  const findMany = (_company: string, ids: readonly string[]) =>
    Promise.resolve(targets.map(longDelivery).filter(({ id }) => ids.includes(id)));
  const many = {
    ...deps,
    messages: { ...deps.messages, findOne: () => Promise.resolve({ ...message, targets }) },
    deliveries: { ...deps.deliveries, findMany },
  };
  const query = { companyId: 'comp_a', messageId: 'msg_1', limit: 100 };
  const first = await listDeliveries(many, query);
  expect([first.deliveries.length, first.nextCursor]).toEqual([7, 'wh_05']);
  const second = await listDeliveries(many, { ...query, cursor: 'wh_05' });
  expect([second.deliveries.length, second.nextCursor]).toEqual([5, null]);
});

/** 40 attempts with a response of 4 KiB each. */
function longDelivery(webhookId: string): Delivery {
  const id = deliveryIdOf('msg_1', webhookId);
  const attempts = Array.from({ length: 40 }, (_, n) => ({
    id: attemptIdOf(id, n + 1),
    number: n + 1,
    trigger: 'resend' as const,
    statusCode: 500,
    outcome: 'http_5xx' as const,
    response: 'x'.repeat(4_096),
    responseHeaders: [],
    startedAtMs: 1,
    durationMs: 1,
  }));
  return {
    ...unattemptedDelivery(message, webhookId, 1),
    id,
    attempts,
    attemptCount: attempts.length,
    waiting: null,
    waitingSinceMs: null,
  };
}

test('an unknown message is 404', async () => {
  const query = { companyId: 'comp_a', messageId: 'msg_2', limit: 1 };
  await expect(listDeliveries(deps, query)).rejects.toMatchObject({ status: 404 });
  await expect(readMessage({ ...deps, nextSlice }, 'comp_a', 'msg_2')).rejects.toMatchObject({
    status: 404,
  });
});

test('a message without targets has no oldest webhook', async () => {
  const messages = { findOne: () => Promise.resolve({ ...message, targets: [] }) };
  expect(await readMessage({ ...deps, messages, nextSlice }, 'comp_a', 'msg_1')).toMatchObject({
    oldest: { webhook: null, delivery: undefined },
    deliveries: [],
  });
});

/** Of one millisecond. */
const idOf = (n: number): string => `msg_01hf2m6q7x${String(n).padStart(16, '0')}`;
const targets = (count: number) => Array.from({ length: count }, (_, n) => `wh_${n}`);
const MESSAGES = [
  sampleMessage(idOf(1), { targets: targets(3) }),
  sampleMessage(idOf(2), { targets: targets(1_200), disabledTargets: new Set(['wh_1100']) }),
];

async function* outlinesAt(): AsyncGenerator<Message> {
  for (const message of MESSAGES) yield await Promise.resolve(message);
}

const stores: ReadStores = {
  messages: {
    findOne: (_companyId, id) => Promise.resolve(MESSAGES.find((each) => each.id === id) ?? null),
    outlinesAt,
  },
  deliveries: { findMany: () => Promise.resolve([]) },
  webhooks: {
    findOne: () => Promise.resolve(null),
    cancelBeforeOf: () => Promise.resolve(new Map<string, number>()),
  },
};

function countTurns() {
  const turns = { taken: 0 };
  const nextSlice = (): Promise<void> => Promise.resolve(void (turns.taken += 1));
  return { turns, nextSlice };
}

describe('a delivery without a document', () => {
  test.each([
    ['wh_1', 'pending'],
    ['wh_1100', 'cancelled'],
  ])('to %s is found among the messages of its millisecond: %s', async (webhookId, status) => {
    const { nextSlice } = countTurns();
    const id = deliveryIdOf(idOf(2), webhookId);
    const found = await readDelivery({ ...stores, nextSlice }, 'comp_a', id);
    expect(found?.source).toMatchObject({ id, messageId: idOf(2), webhookId, status });
  });

  test('has the times of its message, so that one that is cancelled is removed with it', async () => {
    const lifetime = { expiresAtMs: 2_000, removeAtMs: 3_000 };
    const found = { ...message, ...lifetime };
    const messages = { ...deps.messages, findOne: () => Promise.resolve(found) };
    const query = { companyId: 'comp_a', messageId: 'msg_1', limit: 1 };
    const { deliveries } = await listDeliveries({ ...deps, messages }, query);
    expect(deliveries[0]?.source).toMatchObject(lifetime);
  });

  test('that does not exist takes a turn for each message and each 500 ids', async () => {
    const { turns, nextSlice } = countTurns();
    const id = deliveryIdOf(idOf(3), 'wh_1');
    expect(await readDelivery({ ...stores, nextSlice }, 'comp_a', id)).toBeNull();
    // The third message turn finds that there is none; the second message has two further slices.
    expect(turns.taken).toBe(5);
  });

  test('is searched for no longer than its request may take', async () => {
    const id = deliveryIdOf(idOf(3), 'wh_1');
    const nextSlice = (): Promise<void> => Promise.reject(new Error('the time is over'));
    await expect(readDelivery({ ...stores, nextSlice }, 'comp_a', id)).rejects.toThrow('over');
  });
});

test('an attempt is found by its id, with a turn for each 500 ids that are derived', async () => {
  const unused = () => Promise.reject(new Error('not used'));
  const attempted = ['wh_0', 'wh_1', 'wh_2', 'wh_3', 'wh_4', 'wh_5'];
  const deps: FindByIdDeps = {
    ...stores,
    projects: { get: unused },
    apps: { get: unused },
    messages: { ...stores.messages, outlinesOf: unused },
    deliveries: {
      ...stores.deliveries,
      outlinesOf: (_companyId, ids) =>
        Promise.resolve(
          attempted
            .map((webhookId) => ({ webhookId, id: deliveryIdOf(idOf(2), webhookId) }))
            .filter(({ id }) => ids.includes(id))
            .map((each) => ({
              ...each,
              status: 'exhausted' as const,
              attemptCount: 200,
              createdAtMs: 1,
              updatedAtMs: 1,
            })),
        ),
    },
    resends: { findShown: unused },
    cancellations: { findOne: unused },
    apiKeys: { has: unused },
    readOutlines: unused,
  };
  const { turns, nextSlice } = countTurns();
  const deliveryId = deliveryIdOf(idOf(2), 'wh_5');
  const id = attemptIdOf(deliveryId, 200);
  const found = await findById(deps, 'comp_a', id, nextSlice);
  expect(found).toMatchObject({ kind: 'attempt', messageId: idOf(2), deliveryId, id });
  // One for each message, and one after 600 ids of attempts.
  expect(turns.taken).toBe(3);
});
