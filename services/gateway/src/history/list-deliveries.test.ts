import { expect, test } from '@jest/globals';
import type { Delivery } from '@posthorn/domain/message/delivery.ts';
import { unattemptedDelivery } from '@posthorn/domain/delivery-lifecycle/settlement.ts';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { listDeliveries } from './list-deliveries.ts';
import { readMessage } from './read-message.ts';

const message = { ...sampleMessage('msg_1'), targets: ['wh_1', 'wh_2', 'wh_3'] };

const deps = {
  messages: {
    findOne: (_company: string, id: string) => Promise.resolve(id === 'msg_1' ? message : null),
    outlinesAt: () => ({ [Symbol.asyncIterator]: () => [].values() as never }),
  },
  deliveries: { findMany: () => Promise.resolve([]), outlinesOf: () => Promise.resolve([]) },
  webhooks: { findOne: () => Promise.resolve(null), findTarget: () => Promise.resolve(null) },
};

const takeTurn = () => Promise.resolve();

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
  };
}

test('an unknown message is 404', async () => {
  const query = { companyId: 'comp_a', messageId: 'msg_2', limit: 1 };
  await expect(listDeliveries(deps, query)).rejects.toMatchObject({ status: 404 });
  await expect(readMessage({ ...deps, takeTurn }, 'comp_a', 'msg_2')).rejects.toMatchObject({
    status: 404,
  });
});

test('a message without targets has no oldest webhook', async () => {
  const messages = { findOne: () => Promise.resolve({ ...message, targets: [] }) };
  expect(await readMessage({ ...deps, messages, takeTurn }, 'comp_a', 'msg_1')).toMatchObject({
    oldest: { webhook: null, delivery: undefined },
    deliveries: [],
  });
});
