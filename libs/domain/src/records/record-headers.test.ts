import { expect, test } from '@jest/globals';
import { DUE_AT_HEADER, headersOfMessage, lastingHeaders, readMs } from './record-headers.ts';

test('milliseconds are read from a header', () => {
  expect(readMs({ [DUE_AT_HEADER]: '1700000000000' }, DUE_AT_HEADER)).toBe(1_700_000_000_000);
  expect(readMs({ [DUE_AT_HEADER]: '0' }, DUE_AT_HEADER)).toBe(0);
});

test.each([undefined, '', 'soon', '-1', '1e3', '1.5', ' 1', '1'.repeat(16)])(
  'a header of %j has no readable time',
  (text) => {
    expect(readMs(text === undefined ? {} : { [DUE_AT_HEADER]: text }, DUE_AT_HEADER)).toBeNull();
  },
);

test('the request, its trace context and the event type stay on the records of a delivery, and nothing else', () => {
  const ofAttempt = { 'due-at': '1', 'turn-at': '1', 'deferred-since': '1', 'clock-ahead': '1' };
  const lasting = { requestId: 'req_1', traceparent: '00-1', 'event-type': 'order.paid' };
  const { requestId, traceparent } = lasting;
  expect(headersOfMessage({ requestId, traceparent, eventType: 'order.paid' })).toEqual(lasting);
  expect(headersOfMessage({ requestId, eventType: null })).toEqual({ requestId });
  expect(lastingHeaders({ ...ofAttempt, ...lasting })).toEqual(lasting);
  expect(lastingHeaders(ofAttempt)).toEqual({});
});
