import { describe, expect, test } from '@jest/globals';
import { type Attempt, messageStatus, refOf, withoutResponse } from './delivery/delivery.ts';
import { lifetimeOf, notStoredBy, notStoredOf, orderOfMessage } from './message.ts';

describe('the status of a message', () => {
  test('is that of its least finished delivery', () => {
    expect(messageStatus(['delivered', 'cancelled', 'exhausted', 'pending'])).toBe('pending');
    expect(messageStatus(['delivered', 'cancelled', 'exhausted'])).toBe('exhausted');
    expect(messageStatus(['cancelled', 'delivered'])).toBe('cancelled');
    expect(messageStatus(['delivered', 'delivered'])).toBe('delivered');
  });

  test('is that of a message to nobody when it has no targets', () => {
    expect(messageStatus([])).toBe('no_target');
  });
});

describe('what is not stored', () => {
  test.each([
    [{}, {}],
    [{ storeResponses: true, storePayloads: 'retained' }, {}],
    [{ storeResponses: false }, { omitsResponses: true }],
    [{ storePayloads: 'until-delivered' }, { erasesPayload: true }],
    [
      { storeResponses: false, storePayloads: 'until-delivered' },
      { omitsResponses: true, erasesPayload: true },
    ],
  ] as const)('follows from the settings of the app: %j', (settings, expected) => {
    expect(notStoredBy(settings)).toEqual(expected);
  });

  test('goes from one step of a delivery to the next', () => {
    const ref = {
      messageId: 'msg_1',
      webhookId: 'wh_1',
      companyId: 'comp_1',
      appId: null,
      createdAtMs: 1,
    };
    const both = { erasesPayload: true, omitsResponses: true } as const;
    expect(refOf({ ...ref, ...both, other: 1 } as typeof ref)).toEqual({ ...ref, ...both });
    expect(refOf(ref)).toEqual(ref);
    expect(notStoredOf({ ...ref, ...both })).toEqual(both);
  });
});

test('the ordering key is in every reference to a delivery, and in those of a message that is in order', () => {
  const ref = { messageId: 'msg_1', webhookId: 'wh_1', companyId: 'comp_1', appId: null };
  const source = { ...ref, createdAtMs: 1, orderingKey: 'order-17' };
  expect(refOf(source)).toEqual(source);
  expect(orderOfMessage({ ...source, isOrdered: true })).toEqual({ orderingKey: 'order-17' });
  expect(orderOfMessage(source)).toEqual({});
});

test('an attempt without its response keeps status, outcome and duration', () => {
  const attempt: Attempt = {
    id: 'att_1',
    number: 1,
    trigger: 'first',
    outcome: 'http_4xx',
    statusCode: 404,
    response: 'no such person',
    responseHeaders: [{ key: 'x-request', value: '1' }],
    startedAtMs: 5,
    durationMs: 7,
  };
  expect(withoutResponse(attempt)).toEqual({ ...attempt, response: null, responseHeaders: [] });
});

test('the lifetime of a message is in every reference to it, without what it does not have', () => {
  const ref = { messageId: 'msg_1', webhookId: 'wh_1', companyId: 'comp_1', appId: null };
  const source = { ...ref, createdAtMs: 1, expiresAtMs: 2, removeAtMs: 3, other: 4 };
  expect(refOf(source)).toEqual({ ...ref, createdAtMs: 1, expiresAtMs: 2, removeAtMs: 3 });
  expect(Object.keys(lifetimeOf({ removeAtMs: 3 }))).toEqual(['removeAtMs']);
  expect(lifetimeOf({})).toEqual({});
});
