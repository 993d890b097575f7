import { describe, expect, test } from '@jest/globals';
import { grouped, isFound, selectorOf, toggled, wildcardsOf } from './catalogue.ts';

const type = (name: string, group: string | null = null, description = '') => ({
  name,
  group,
  description,
});

describe('event types', () => {
  test('are grouped by their group, or by the first part of their name', () => {
    const types = [
      type('order.paid'),
      type('invoice:sent', 'order'),
      type('ping'),
      type('order/x'),
    ];
    expect(grouped(types).map((each) => [each.name, each.types.map(({ name }) => name)])).toEqual([
      ['order', ['order.paid', 'invoice:sent', 'order/x']],
      ['ping', ['ping']],
    ]);
  });

  test.each([
    ['PAID', true],
    [' orders ', true],
    ['once', true],
    ['sent', false],
    ['', true],
  ])('are found by a part of name, group or description: %s', (text, isThere) => {
    expect(isFound(type('order.paid', 'Orders', 'Comes once'), text)).toBe(isThere);
  });

  test('have a wildcard where several begin alike, the widest first', () => {
    const names = ['order.item.added', 'order.item.removed', 'order.paid', 'a:b', 'ping'];
    expect(wildcardsOf(names)).toEqual(['order.*', 'order.item.*']);
  });
});

describe('an entry', () => {
  test.each([
    ['order.paid', 'order.paid'],
    ['order.item.added', 'order.*'],
    ['order.item.*', 'order.*'],
    ['order.*', 'order.*'],
    ['order', undefined],
    ['invoice.paid', undefined],
  ])('that selects %s is %s', (name, entry) => {
    expect(selectorOf(['order.paid', 'order.*', 'invoice'], name)).toBe(entry);
  });

  test('is added at the end, and taken away', () => {
    expect(toggled(['a'], 'b')).toEqual(['a', 'b']);
    expect(toggled(['a', 'b', 'c'], 'b')).toEqual(['a', 'c']);
  });
});
