import { expect, it } from '@jest/globals';
import { messageBody } from './message-body.ts';

it('sends the payload as it was typed, with the fields that it has', () => {
  const payload = '{ "order": 12345678901234567890 }';
  const to = { appId: 'app_1' };
  expect(messageBody({ to, eventType: null, tags: [], externalId: null }, payload)).toBe(
    `{"appId":"app_1","payload":${payload}}`,
  );
  const fields = { to, eventType: 'order.paid', tags: ['vip'], externalId: '17' };
  expect(messageBody(fields, payload)).toBe(
    `{"appId":"app_1","eventType":"order.paid","tags":["vip"],"externalId":"17","payload":${payload}}`,
  );
});
