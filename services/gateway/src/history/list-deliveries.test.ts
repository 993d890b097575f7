import { describe, expect, test } from '@jest/globals';
import type { DeliveryStatus } from '@posthorn/domain/delivery/delivery.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { ListedDelivery } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import fc from 'fast-check';
import {
  descending,
  listDepsOf,
  type Shape,
  type Stored,
  storeMessages,
} from '../../../../test/support/memory/memory-messages.ts';
import {
  type DeliveryListQuery,
  listAllDeliveries,
  type ListDeliveriesDeps,
} from './list-deliveries.ts';

/** The lists along messages: those of other statuses go along indexes, which the real store has. */
function depsOf(stored: readonly Stored[], reads = { count: 0, deliveries: 0 }) {
  const { messages, webhooks, nextSlice } = listDepsOf(stored, reads);
  const known = new Map(stored.flatMap((each) => each.known).map((each) => [each.id, each]));
  return {
    messages: { ...messages, eventTypesOf: () => Promise.resolve(new Map<string, string>()) },
    webhooks,
    nextSlice,
    deliveries: {
      listedOf: (_companyId, ids) => Promise.resolve(ids.flatMap((id) => listed(known.get(id)))),
      listUndelivered: () => Promise.reject(new Error('this list goes along messages')),
    },
  } satisfies ListDeliveriesDeps;
}

function listed(outline: Stored['known'][number] | undefined): ListedDelivery[] {
  if (!outline) return [];
  const rest = { reason: null, nextAttemptAtMs: null, waiting: null, waitingSinceMs: null };
  return [{ ...outline, ...rest, appId: null, lastOutcome: null }];
}

type Filter = Pick<DeliveryListQuery, 'statuses' | 'eventType' | 'webhookId'>;

/** The same rule without pages and bounds of work. */
function expectedIds(stored: readonly Stored[], filter: Filter): string[] {
  const { statuses, eventType, webhookId } = filter;
  return stored
    .toSorted((a, b) => descending(a.message.id, b.message.id))
    .filter(({ message }) => eventType === undefined || message.eventType === eventType)
    .flatMap(({ message, known }) =>
      message.targets
        .filter((target) => webhookId === undefined || target === webhookId)
        .filter((target) => {
          const delivery = known.find((each) => each.webhookId === target);
          return statuses === undefined || statuses.includes(delivery?.status ?? 'pending');
        })
        .map((target) => deliveryIdOf(message.id, target))
        .sort(descending),
    );
}

async function pagesOf(deps: ListDeliveriesDeps, filter: Filter, limit: number) {
  const pages: string[][] = [];
  let after: DeliveryListQuery['after'] | null;
  while (after !== null) {
    const query = { ...filter, after, limit };
    const { deliveries, next } = await listAllDeliveries(deps, 'comp_a', query);
    pages.push(deliveries.map(({ id }) => id));
    after = next;
  }
  return pages;
}

const STATUSES = ['pending', 'delivered', 'exhausted', 'cancelled', 'none'] as const;

describe('the list of deliveries along messages', () => {
  test('has every delivery that matches, over all pages and for every filter', async () => {
    const shapes = fc.array(fc.array(fc.constantFrom(...STATUSES), { maxLength: 4 }), {
      maxLength: 24,
    });
    const filters = fc.record({
      statuses: fc.constantFrom(
        undefined,
        ['delivered'] as const,
        ['pending', 'delivered'] as const,
      ),
      eventType: fc.constantFrom(undefined, 'order.paid'),
      webhookId: fc.constantFrom(undefined, 'wh_2'),
    });
    const limits = fc.integer({ min: 1, max: 5 });
    const holds = fc.asyncProperty(shapes, filters, limits, async (given, filter, limit) => {
      const stored = storeMessages(given);
      const pages = await pagesOf(depsOf(stored), filter, limit);
      expect(pages.flat()).toEqual(expectedIds(stored, filter));
    });
    await fc.assert(holds, { numRuns: 200 });
  });

  test.each([undefined, 'wh_2', 'wh_2999'])(
    'goes on behind a message to 3,000 webhooks: %s',
    async (webhookId) => {
      const wide = Array<DeliveryStatus>(3_000).fill('delivered');
      const stored = storeMessages([
        ['delivered', 'none', 'delivered'],
        wide,
        ['none', 'none', 'none'],
      ]);
      const pages = await pagesOf(depsOf(stored), { webhookId }, 500);
      expect(pages.flat()).toEqual(expectedIds(stored, { webhookId }));
    },
  );

  test('a short page of a rare status reads many messages at a time', async () => {
    const stored = storeMessages(
      Array.from({ length: 5_000 }, (_, n): Shape => [n === 0 ? 'delivered' : 'exhausted']),
    );
    const deps = depsOf(stored);
    let reads = 0;
    const listedOf = (companyId: string, ids: readonly string[]) => {
      reads += 1;
      return deps.deliveries.listedOf(companyId, ids);
    };
    const query = { statuses: ['delivered'], limit: 1 } as const;
    const counted = { ...deps, deliveries: { ...deps.deliveries, listedOf } };
    const { deliveries } = await listAllDeliveries(counted, 'comp_a', query);
    expect(deliveries.map(({ id }) => id)).toEqual(expectedIds(stored, query));
    expect(reads).toBeLessThanOrEqual(12);
  });

  test('a page of a rare event type ends after 25,000 targets of other types were read, and one with an entry after 2,500', async () => {
    const wide = Array<DeliveryStatus>(1_000).fill('delivered');
    const stored = storeMessages(Array<Shape>(40).fill(wide)).map(({ message, known }, n) => ({
      message: { ...message, eventType: n === 0 ? 'rare' : null },
      known,
    }));
    const filter = { statuses: ['delivered'], eventType: 'rare' } as const;
    const reads = { count: 0, deliveries: 0 };
    const first = await listAllDeliveries(depsOf(stored, reads), 'comp_a', { ...filter, limit: 5 });
    expect([first.deliveries, reads.count]).toEqual([[], 25]);
    const pages = await pagesOf(depsOf(stored), filter, 500);
    expect(pages.flat()).toEqual(expectedIds(stored, filter));
  });
});
