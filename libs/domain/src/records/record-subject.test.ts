import { expect, test } from '@jest/globals';
import { deliveryIdOf } from '../ids/ids.ts';
import { logFieldsIn } from './record-subject.ts';
import { encodeRetryDue } from './records.ts';

const ref = {
  messageId: 'msg_1',
  webhookId: 'wh_1',
  companyId: 'comp_a',
  appId: null,
  createdAtMs: 1_000,
};

test('A record names whom it is about, whichever topic it is of', () => {
  const value = encodeRetryDue({ ...ref, attemptNumber: 2, dueAtMs: 5_000 });
  const { messageId, webhookId, companyId } = ref;
  const ids = { messageId, webhookId, companyId, deliveryId: deliveryIdOf('msg_1', 'wh_1') };
  for (const topic of ['p.retry-due', 'p.retry.5s', 'p.slow-lane']) {
    expect(logFieldsIn('p.', { topic, value })).toEqual(ids);
  }
});

test('A record that cannot be read, or of another topic, names nobody', () => {
  const value = Buffer.from('{}');
  expect(logFieldsIn('p.', { topic: 'p.retry-due', value })).toBeNull();
  expect(logFieldsIn('p.', { topic: 'p.operator-events', value })).toBeNull();
});
