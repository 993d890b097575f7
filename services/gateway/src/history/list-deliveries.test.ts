import { expect, test } from '@jest/globals';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { listDeliveries } from './list-deliveries.ts';
import { readMessage } from './read-message.ts';

const message = { ...sampleMessage('msg_1'), targets: ['wh_1', 'wh_2', 'wh_3'] };

const deps = {
  messages: {
    findOne: (_company: string, id: string) => Promise.resolve(id === 'msg_1' ? message : null),
    findByIdPrefix: () => Promise.resolve([]),
  },
  deliveries: { findMany: () => Promise.resolve([]), outlinesOf: () => Promise.resolve([]) },
  webhooks: { findOne: () => Promise.resolve(null), findTarget: () => Promise.resolve(null) },
};

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

test('an unknown message is 404', async () => {
  const query = { companyId: 'comp_a', messageId: 'msg_2', limit: 1 };
  await expect(listDeliveries(deps, query)).rejects.toMatchObject({ status: 404 });
  await expect(readMessage(deps, 'comp_a', 'msg_2')).rejects.toMatchObject({ status: 404 });
});

test('a message without targets has no oldest webhook', async () => {
  const messages = { findOne: () => Promise.resolve({ ...message, targets: [] }) };
  expect(await readMessage({ ...deps, messages }, 'comp_a', 'msg_1')).toMatchObject({
    oldest: { webhook: null, delivery: undefined },
    others: [],
  });
});
