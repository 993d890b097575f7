import { expect, test } from '@jest/globals';
import { logFieldsOf, logFieldsOfMany } from './log-fields.ts';

const ref = { messageId: 'msg_1', deliveryId: 'dlv_1', webhookId: 'wh_1', companyId: 'comp_1' };

test('a line has the ids of its delivery, and nothing else that is known of it', () => {
  const due = { ...ref, payload: Buffer.from('secret'), appId: 'app_1' };
  expect(logFieldsOf(due)).toEqual(ref);
});

test('a line about many deliveries has each id once, and five of a kind at most', () => {
  const many = Array.from({ length: 9 }, (_, n) => ({ ...ref, deliveryId: `dlv_${n}` }));
  expect(logFieldsOfMany(many)).toEqual({
    messageIds: ['msg_1'],
    deliveryIds: ['dlv_0', 'dlv_1', 'dlv_2', 'dlv_3', 'dlv_4'],
    webhookIds: ['wh_1'],
    companyIds: ['comp_1'],
  });
});
