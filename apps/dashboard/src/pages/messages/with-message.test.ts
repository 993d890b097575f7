import { expect, test } from '@jest/globals';
import type { Schemas } from '../../api/client.ts';
import { withMessage } from './with-message.ts';

const AT = '2026-01-01T00:00:00.000Z';

function row(id: string): Schemas['ListedMessage'] {
  return {
    id,
    delivered: false,
    payload: '{}',
    tags: [],
    externalId: null,
    deliverAt: null,
    expiresAt: null,
    retentionDays: null,
    noTargetReason: null,
    createdAt: AT,
    updatedAt: AT,
    deliveries: [{ id: `dlv_${id}`, webhookId: 'wh_1', status: 'pending', attemptCount: 1 }],
    appId: 'app_1',
    eventType: null,
    status: 'pending',
  };
}

const message: Schemas['Message'] = {
  ...row('msg_2'),
  status: 'delivered',
  delivered: true,
  deliveries: [{ id: 'dlv_msg_2', webhookId: 'wh_1', status: 'delivered', attemptCount: 2 }],
  signature: null,
  headers: [],
  deliveryAttempt: null,
};

test('the present state of a message is shown in its place, and nothing else changes', () => {
  const pages = [
    { data: [row('msg_3'), row('msg_2')], nextCursor: 'msg_2' },
    { data: [row('msg_1')] },
  ];
  const data = { pages, pageParams: [undefined, 'msg_2'] };
  const changed = withMessage(data, message);
  expect(changed).toEqual({
    ...data,
    pages: [
      {
        data: [
          row('msg_3'),
          { ...row('msg_2'), status: 'delivered', delivered: true, deliveries: message.deliveries },
        ],
        nextCursor: 'msg_2',
      },
      pages[1],
    ],
  });
  expect(changed.pages[1]).toBe(pages[1]);
});

test('a message that is not shown is not added', () => {
  const data = { pages: [{ data: [row('msg_1')] }], pageParams: [undefined] };
  expect(withMessage(data, message)).toEqual(data);
});
