import { beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createPlaceOrder, type PlaceOrder } from './place-order.ts';

interface Taker {
  id: string;
  companyId: string;
}

let order: PlaceOrder<Taker>;

beforeEach(() => {
  order = createPlaceOrder();
});

const taker = (companyId: string, n = 0): Taker => ({ id: `${companyId}${n}`, companyId });

function addAll(...takers: Taker[]): void {
  for (const each of takers) order.add(each);
}

function takeAll(): string[] {
  const taken: string[] = [];
  for (let next = order.next(); next; next = order.next()) taken.push(next.id);
  return taken;
}

describe('free places', () => {
  it('go to companies in turn, and to the endpoints of a company in turn', () => {
    addAll(
      taker('a', 1),
      taker('a', 2),
      taker('a', 3),
      taker('b', 1),
      taker('c', 1),
      taker('b', 2),
    );
    expect(takeAll()).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  });

  it('go to nobody when nobody waits', () => {
    expect(order.next()).toBeNull();
  });

  it('all go to a company that waits alone', () => {
    addAll(taker('a', 1), taker('a', 2));
    expect(takeAll()).toEqual(['a1', 'a2']);
  });

  it('reach a newcomer after one round, however many of other companies wait', () => {
    for (let n = 0; n < 2_000; n += 1) order.add(taker('large', n));
    order.next();
    order.add(taker('small'));
    expect([order.next()?.id, order.next()?.id]).toEqual(['large1', 'small0']);
  });

  it('go to one that waits again at the end of the round', () => {
    const again = taker('a', 1);
    addAll(again, taker('b', 1), taker('a', 2));
    order.next();
    order.add(again);
    expect(takeAll()).toEqual(['b1', 'a2', 'a1']);
  });

  it('go once to one that was added twice, and never to one that was removed', () => {
    const [twice, removed] = [taker('a', 1), taker('b', 1)];
    addAll(twice, removed, twice);
    order.remove(removed);
    order.remove(taker('unknown'));
    expect(takeAll()).toEqual(['a1']);
  });
});

describe('whoever is added and removed', () => {
  it('is taken exactly once, and the shares of waiting companies differ by at most one', () => {
    const some = fc.array(fc.record({ companyId: fc.constantFrom('a', 'b', 'c'), n: fc.nat(5) }));
    fc.assert(
      fc.property(some, some, (added, removed) => {
        order = createPlaceOrder();
        const known = new Map<string, Taker>();
        const find = ({ companyId, n }: { companyId: string; n: number }): Taker => {
          const found = known.get(`${companyId}${n}`) ?? taker(companyId, n);
          known.set(found.id, found);
          return found;
        };
        const expected = new Set(added.map(find));
        addAll(...expected);
        for (const each of removed.map(find)) {
          order.remove(each);
          expected.delete(each);
        }
        const taken = takeAll();
        expect([...taken].sort()).toEqual([...expected].map(({ id }) => id).sort());
        expect(isInTurns(taken)).toBe(true);
      }),
    );
  });
});

/** When a company gets its n-th place, every company that still waits has had n - 1. */
function isInTurns(taken: readonly string[]): boolean {
  const rounds = taken.map(
    (id, at) => taken.slice(0, at).filter((before) => before.startsWith(id.charAt(0))).length,
  );
  return rounds.every((round, at) => at === 0 || round >= (rounds[at - 1] ?? 0));
}
