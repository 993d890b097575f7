import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { wantsEvent } from './webhook.ts';

const types = ['order.paid', 'order.sent', 'order.paid.late'];
const eventTypes = fc.subarray(types);
const eventType = fc.constantFrom(null, 'order', ...types);

describe("a message to a webhook's app", () => {
  test('is for a webhook that names no event types, whatever its own is', () => {
    fc.assert(
      fc.property(eventType, (type) => {
        expect(wantsEvent({ eventTypes: [] }, type)).toBe(true);
      }),
    );
  });

  test('is otherwise for a webhook that names exactly its type', () => {
    fc.assert(
      fc.property(eventTypes, eventType, (wanted, type) => {
        fc.pre(wanted.length > 0);
        const isNamed = wanted.some((each) => each === type);
        expect(wantsEvent({ eventTypes: wanted }, type)).toBe(isNamed);
      }),
    );
  });

  test('without an event type is for none that names some', () => {
    expect(wantsEvent({ eventTypes: types }, null)).toBe(false);
  });
});
