import { describe, expect, it } from '@jest/globals';
import { isValidFilter } from '../../../../test/support/cli/valid-filter.ts';
import { type ConvoySubscription, filterOfSubscriptions } from './convoy-filters.ts';

const ofBody = (body: object, event_types = ['*']): ConvoySubscription => ({
  subscription: { filter_config: { event_types, filter: { body } } },
  filters: [],
});

const ofTypes = (event_types: string[], ...filters: object[]): ConvoySubscription => ({
  subscription: { filter_config: { event_types } },
  filters: filters as ConvoySubscription['filters'],
});

function translated(...subscriptions: ConvoySubscription[]): unknown {
  const filter = filterOfSubscriptions(subscriptions);
  if (filter) expect(isValidFilter(filter)).toBe(true);
  return filter;
}

describe('a filter of Convoy', () => {
  it.each([
    [{ amount: 5 }, { payload: { amount: 5 } }],
    [
      { 'order.amount': { $gte: 5, $lt: 9 } },
      { payload: { order: { amount: { $gte: 5, $lt: 9 } } } },
    ],
    [
      { order: { paid: true, 'by.country': { $in: ['AT', 'DE'] } }, 'order.id': { $exist: true } },
      {
        payload: {
          order: { paid: true, by: { country: { $in: ['AT', 'DE'] } }, id: { $exist: true } },
        },
      },
    ],
    [
      { 'a.b': 1, a: { b: { $neq: 2 } } },
      { $and: [{ payload: { a: { b: 1 } } }, { payload: { a: { b: { $neq: 2 } } } }] },
    ],
    [{ 'items.$.sku': 'A-7' }, { payload: { items: { sku: 'A-7' } } }],
    [
      { 'items.$.sku': 'A-7', 'items.$.count': 2 },
      { $and: [{ payload: { items: { sku: 'A-7' } } }, { payload: { items: { count: 2 } } }] },
    ],
    [
      { $or: [{ a: 1 }, { b: 2, $and: [{ c: null }] }] },
      { $or: [{ payload: { a: 1 } }, { $and: [{ payload: { b: 2 } }, { payload: { c: null } }] }] },
    ],
  ])('on the body %j selects the same here', (body, filter) => {
    expect(translated(ofBody(body))).toEqual(filter);
  });

  it.each([
    [{ name: { $regex: '^A' } }],
    [{ 'items.0.sku': 'A-7' }],
    [{ tags: ['a'] }],
    [{ amount: { $gt: '5' } }],
    [{ a: { $or: [{ b: 1 }] } }],
    [{ $or: [] }],
    [{ a: {} }],
    [{ $not: { a: 1 } }],
  ])('on the body %j cannot be said here', (body) => {
    expect(translated(ofBody(body))).toBeNull();
  });

  it('on headers cannot be said here', () => {
    expect(translated(ofTypes(['a'], { event_type: 'a', headers: { b: 1 } }))).toBeNull();
  });

  it('of one event type leaves the others as they are', () => {
    const filters = [
      { event_type: 'a', body: { n: 1 } },
      { event_type: 'b', body: {} },
    ];
    expect(translated(ofTypes(['a', 'b'], ...filters))).toEqual({
      $or: [
        { $and: [{ eventType: 'a' }, { payload: { n: 1 } }] },
        { $not: { eventType: { $in: ['a'] } } },
      ],
    });
  });

  it('of all other event types is for those without their own', () => {
    const filters = [
      { event_type: 'a', body: { n: 1 } },
      { event_type: '*', body: { n: 2 } },
    ];
    expect(translated(ofTypes(['*'], ...filters))).toEqual({
      $or: [
        { $and: [{ eventType: 'a' }, { payload: { n: 1 } }] },
        { $and: [{ $not: { eventType: { $in: ['a'] } } }, { payload: { n: 2 } }] },
      ],
    });
  });

  it('keeps nothing away that another subscription gets', () => {
    expect(filterOfSubscriptions([ofBody({ n: 1 }), ofTypes(['*'])])).toEqual({});
  });

  it('of the subscription counts only without those of single event types', () => {
    const old = ofBody({ n: 9 }, ['a', 'b']);
    const filters = [
      { event_type: 'a', body: {} },
      { event_type: '*', body: { n: 2 } },
    ];
    expect(translated({ ...old, filters })).toEqual({
      $or: [
        { $and: [{ $not: { eventType: { $in: ['a'] } } }, { payload: { n: 2 } }] },
        { eventType: { $in: ['a'] } },
      ],
    });
  });

  it('is about the event types of its own subscription', () => {
    expect(translated(ofBody({ n: 1 }, ['a', 'b']), ofTypes(['c']))).toEqual({
      $or: [
        { $and: [{ eventType: { $in: ['a', 'b'] } }, { payload: { n: 1 } }] },
        { eventType: { $in: ['c'] } },
      ],
    });
  });
});
