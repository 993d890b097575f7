import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { eventTypeSelector } from './field-types.ts';
import { selectorsOf, wantsEvent } from './webhook.ts';

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

describe('a beginning with * selects', () => {
  test.each([
    ['order.*', 'order.paid', true],
    ['order.*', 'order.item.added', true],
    ['order.*', 'order', false],
    ['order.*', 'orders.paid', false],
    ['order.item.*', 'order.paid', false],
    ['shop/eu:*', 'shop/eu:sent', true],
    ['shop/*', 'shop/eu:sent', true],
    ['shop:*', 'shop/eu:sent', false],
  ])('by %s the type %s: %s', (selector, type, expected) => {
    expect(wantsEvent({ eventTypes: ['other', selector] }, type)).toBe(expected);
  });

  test('the types whose selectors have it, whatever the types are', () => {
    const name = fc.stringMatching(/^[ab.:/]{1,8}$/);
    const selector = fc.oneof(name, fc.stringMatching(/^[ab.:/]{0,4}[.:/]\*$/));
    fc.assert(
      fc.property(fc.array(selector, { minLength: 1, maxLength: 5 }), name, (eventTypes, type) => {
        const isAmong = selectorsOf(type).some((each) => eventTypes.includes(each));
        expect(wantsEvent({ eventTypes }, type)).toBe(isAmong);
      }),
    );
  });

  test('nothing elsewhere in a name, and not alone', () => {
    for (const text of ['*', '*.paid', 'order.*.paid', 'order*', 'or*der', 'order.**', '']) {
      expect(eventTypeSelector.safeParse(text).success).toBe(false);
    }
    const problem = eventTypeSelector.safeParse('*').error?.issues[0]?.message;
    expect(problem).toBe('selects no event type; an empty list selects all');
    expect(eventTypeSelector.safeParse(`${'a'.repeat(126)}.*`).success).toBe(true);
    expect(eventTypeSelector.safeParse(`${'a'.repeat(127)}.*`).success).toBe(false);
  });
});
