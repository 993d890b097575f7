import { expect, test } from '@jest/globals';
import { UnreadableRecordError } from '../records/records.ts';
import {
  decodeOperatorEvent,
  encodeOperatorEvent,
  operatorPayloadOf,
  type OperatorEvent,
} from './operator-event.ts';

const event: OperatorEvent = {
  id: 'oev_1',
  type: 'circuit.opened',
  companyId: 'comp_a',
  webhookId: 'wh_1',
  detail: 'the circuit is open for 30000 ms',
  count: 3,
  firstAtMs: Date.UTC(2026, 10, 24, 6),
  lastAtMs: Date.UTC(2026, 10, 24, 7),
};

test('an event is read as it was written', () => {
  expect(decodeOperatorEvent(encodeOperatorEvent(event))).toEqual(event);
});

test.each(['{', '[]', '{"version":2}', '{"version":1,"type":"other"}'])(
  '%s is no event',
  (text) => {
    expect(() => decodeOperatorEvent(Buffer.from(text))).toThrow(UnreadableRecordError);
  },
);

test('the operator gets its type, its time and what happened to whom', () => {
  expect(JSON.parse(operatorPayloadOf(event).toString())).toEqual({
    type: 'circuit.opened',
    timestamp: '2026-11-24T07:00:00.000Z',
    data: {
      companyId: 'comp_a',
      webhookId: 'wh_1',
      detail: 'the circuit is open for 30000 ms',
      count: 3,
      firstAt: '2026-11-24T06:00:00.000Z',
      lastAt: '2026-11-24T07:00:00.000Z',
    },
  });
});
