import { describe, expect, it, test } from '@jest/globals';
import type { Schemas } from '../../api/client.ts';
import { messageBody, pretty, withMessage } from './message-rules.ts';

it('sends the payload as it was typed, with the fields that it has', () => {
  const payload = '{ "order": 12345678901234567890 }';
  const to = { appId: 'app_1' };
  const none = { to, eventType: null, tags: [], externalId: null, orderingKey: null };
  expect(messageBody(none, payload)).toBe(`{"appId":"app_1","payload":${payload}}`);
  const own = { tags: ['vip'], externalId: '17', orderingKey: 'a' };
  const fields = { to, eventType: 'order.paid', ...own };
  expect(messageBody(fields, payload)).toBe(
    `{"appId":"app_1","eventType":"order.paid","tags":["vip"],"externalId":"17","orderingKey":"a","payload":${payload}}`,
  );
});

describe('pretty', () => {
  it('puts each member on a line of its own', () => {
    expect(pretty('{"a":1,"b":[true,null],"c":{"d":"e"}}')).toBe(
      '{\n  "a": 1,\n  "b": [\n    true,\n    null\n  ],\n  "c": {\n    "d": "e"\n  }\n}',
    );
  });

  it('changes no value: numbers beyond 2^53, spaces and brackets in text, escapes', () => {
    const values = '"big": 12345678901234567890,\n  "text": "a  {[,:]} \\"b\\" \\\\"';
    expect(pretty(`{"big" : 12345678901234567890, "text":"a  {[,:]} \\"b\\" \\\\"}`)).toBe(
      `{\n  ${values}\n}`,
    );
  });

  it('keeps empty objects and lists together', () => {
    expect(pretty('{"a":{},"b":[ ]}')).toBe('{\n  "a": {},\n  "b": [ ]\n}');
  });
});

const AT = '2026-01-01T00:00:00.000Z';

function row(id: string): Schemas['ListedMessage'] {
  return {
    id,
    delivered: false,
    payload: '{}',
    tags: [],
    externalId: null,
    orderingKey: null,
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
