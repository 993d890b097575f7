import { describe, expect, test } from '@jest/globals';
import { statusBeforeAttempts } from '@posthorn/domain/delivery/when-cancelled.ts';
import { timeMsOf } from '@posthorn/domain/ids.ts';
import {
  type DeliveryStatus,
  type MessageStatus,
  messageStatus,
} from '@posthorn/domain/delivery/delivery.ts';
import fc from 'fast-check';
import {
  descending,
  listDepsOf,
  type Shape,
  START_MS,
  type Stored,
  storeMessages,
} from '../../../../test/support/memory/memory-messages.ts';
import { type ListDeps, listMessages, type MessageQuery } from './messages.ts';

function statusOf({ message, known }: Stored): MessageStatus {
  return messageStatus(
    message.targets.map(
      (to) =>
        known.find(({ webhookId }) => webhookId === to)?.status ??
        statusBeforeAttempts(message, to),
    ),
  );
}

type Filter = Omit<MessageQuery, 'limit' | 'cursor'>;

function hasDeliveryStatus({ message, known }: Stored, filter: Filter): boolean {
  const { webhookId, deliveryStatus } = filter;
  if (webhookId === undefined || deliveryStatus === undefined) return true;
  const delivery = known.find((each) => each.webhookId === webhookId);
  return (delivery?.status ?? statusBeforeAttempts(message, webhookId)) === deliveryStatus;
}

/** The same rule without pages, indexes and bounds of work. */
function expectedIds(stored: readonly Stored[], filter: Filter): string[] {
  const { appId, webhookId, eventType, status, fromMs = 0, toMs = Infinity } = filter;
  const { tag, externalId } = filter;
  return stored
    .filter((each) => hasDeliveryStatus(each, filter))
    .filter((each) => status === undefined || statusOf(each) === status)
    .map(({ message }) => message)
    .filter((each) => appId === undefined || each.appId === appId)
    .filter((each) => eventType === undefined || each.eventType === eventType)
    .filter(({ targets }) => webhookId === undefined || targets.includes(webhookId))
    .filter(({ tags }) => tag === undefined || tags?.includes(tag))
    .filter((each) => externalId === undefined || each.externalId === externalId)
    .filter(({ createdAtMs }) => createdAtMs >= fromMs && createdAtMs <= toMs)
    .map(({ id }) => id)
    .sort(descending);
}

/** Reads all pages by their cursors. */
async function pagesOf(deps: ListDeps, filter: Filter, limit: number): Promise<string[][]> {
  const pages: string[][] = [];
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const query = { ...filter, cursor, limit };
    const { messages, nextCursor } = await listMessages(deps, 'comp_a', query);
    pages.push(messages.map(({ message }) => message.id));
    cursor = nextCursor;
  }
  return pages;
}

const STATUSES = ['pending', 'delivered', 'exhausted', 'cancelled'] as const;

const shape = fc.array(fc.constantFrom(...STATUSES, 'none' as const), { maxLength: 4 });
const atMs = fc.option(fc.integer({ min: START_MS - 2, max: START_MS + 14 }), { nil: undefined });
const filters = fc.record({
  appId: fc.constantFrom(undefined, 'app_1'),
  webhookId: fc.constantFrom(undefined, 'wh_0', 'wh_2'),
  eventType: fc.constantFrom(undefined, 'order.paid'),
  tag: fc.constantFrom(undefined, 'even'),
  externalId: fc.constantFrom(undefined, 'own'),
  status: fc.constantFrom(undefined, ...STATUSES),
  deliveryStatus: fc.constantFrom(undefined, ...STATUSES),
  fromMs: atMs,
  toMs: atMs,
});

describe('the list of messages', () => {
  test('has every message that matches, newest first, over all pages and for every filter', async () => {
    const shapes = fc.array(shape, { maxLength: 24 });
    const limits = fc.integer({ min: 1, max: 5 });
    const holds = fc.asyncProperty(shapes, filters, limits, async (given, filter, limit) => {
      const stored = storeMessages(given);
      const pages = await pagesOf(listDepsOf(stored), filter, limit);
      expect(pages.flat()).toEqual(expectedIds(stored, filter));
      for (const page of pages) expect(page.length).toBeLessThanOrEqual(limit);
    });
    await fc.assert(holds, { numRuns: 500 });
  });

  test('returns with each message all its deliveries, also those that have no document', async () => {
    const stored = storeMessages([['delivered', 'none', 'exhausted']]);
    const { messages } = await listMessages(listDepsOf(stored), 'comp_a', { limit: 1 });
    const shown = messages.flatMap(({ deliveries }) =>
      deliveries.map(({ webhookId, status }) => [webhookId, status]),
    );
    expect(shown).toEqual([
      ['wh_0', 'delivered'],
      ['wh_1', 'pending'],
      ['wh_2', 'exhausted'],
    ]);
  });

  test('has no cursor after its last page, even when that is full', async () => {
    const deps = listDepsOf(storeMessages([['delivered'], ['delivered']]));
    const { nextCursor } = await listMessages(deps, 'comp_a', { limit: 2 });
    expect(nextCursor).toBeNull();
  });

  test('includes both bounds', async () => {
    const stored = storeMessages([['delivered'], ['delivered'], ['delivered'], ['delivered']]);
    const [, at = ''] = stored.map(({ message }) => message.id);
    const [fromMs, toMs] = [timeMsOf(at), timeMsOf(at)];
    const [ids] = await pagesOf(listDepsOf(stored), { fromMs, toMs }, 5);
    expect(ids).toEqual(expectedIds(stored, { fromMs, toMs }));
    expect(ids).toContain(at);
  });
});

describe('a page of a rare status', () => {
  const many = (count: number, rest: Shape): Stored[] =>
    storeMessages(Array<Shape>(count).fill(rest));

  test.each([
    ['pending', 2_500, many(3_200, ['delivered'])],
    ['cancelled', 1_500, many(2_200, ['exhausted', 'cancelled'])],
  ] as const)('ends after 2,500 deliveries were read: %s', async (status, messages, stored) => {
    const [oldest] = stored;
    Object.assign(oldest?.known[0] ?? {}, { status });
    const reads = { count: 0, deliveries: 0 };
    const deps = listDepsOf(stored, reads);
    const first = await listMessages(deps, 'comp_a', { status, limit: 5 });
    expect([first.messages, reads]).toEqual([[], { count: messages, deliveries: 2_500 }]);
    const pages = await pagesOf(deps, { status }, 5);
    expect(pages).toEqual([[], [oldest?.message.id]]);
  });

  test('a page of a rare status and event type ends after 2,500 messages, the next one finds it', async () => {
    const stored = many(3_200, ['delivered']).map(({ message, known }, n) => ({
      message: { ...message, eventType: n === 0 ? 'rare' : null },
      known,
    }));
    const reads = { count: 0, deliveries: 0 };
    const deps = listDepsOf(stored, reads);
    const query = { eventType: 'rare', limit: 5 };
    const { messages } = await listMessages(deps, 'comp_a', query);
    expect([messages, reads]).toEqual([[], { count: 2_500, deliveries: 0 }]);
    expect(await pagesOf(deps, { eventType: 'rare' }, 5)).toEqual([[], [stored[0]?.message.id]]);
  });

  test('a page of a rare status and an external id reads the messages with this id, and not the failures of others', async () => {
    const stored = many(3_200, ['exhausted']).map(({ message, known }, n) => ({
      message: { ...message, externalId: n === 0 ? 'rare' : 'own' },
      known,
    }));
    const reads = { count: 0, deliveries: 0 };
    const query = { externalId: 'rare', status: 'exhausted', limit: 5 } as const;
    const { messages } = await listMessages(listDepsOf(stored, reads), 'comp_a', query);
    expect([messages.length, reads]).toEqual([1, { count: 1, deliveries: 1 }]);
  });

  test('counts failures of other apps among those 2,500', async () => {
    const stored = many(3_200, ['exhausted']);
    const reads = { count: 0, deliveries: 0 };
    const deps = listDepsOf(stored, reads);
    const query = { appId: 'app_none', status: 'exhausted', limit: 5 } as const;
    const { messages, nextCursor } = await listMessages(deps, 'comp_a', query);
    expect([messages, reads.count, typeof nextCursor]).toEqual([[], 2_500, 'string']);
    expect((await pagesOf(deps, query, 5)).flat()).toEqual([]);
  });

  test('gets past a message that failed at more webhooks than one read takes', async () => {
    const wide = storeMessages([['exhausted'], Array<DeliveryStatus>(1_200).fill('exhausted')]);
    const pages = await pagesOf(listDepsOf(wide), { status: 'exhausted' }, 1);
    expect(pages.flat()).toEqual(expectedIds(wide, {}));
  });
});

describe('a page of messages to a thousand webhooks each', () => {
  const wide = storeMessages(Array<Shape>(25).fill(Array<DeliveryStatus>(1_000).fill('exhausted')));

  test.each([undefined, 'delivered', 'cancelled', 'exhausted'] as const)(
    'ends after a bounded number of them, and the next page continues there: %s',
    async (status) => {
      const reads = { count: 0, deliveries: 0 };
      await listMessages(listDepsOf(wide, reads), 'comp_a', { status, limit: 50 });
      // The last message may go past the bound with its thousand.
      expect(reads.deliveries).toBeLessThanOrEqual(status === undefined ? 10_000 : 3_000);
      const pages = await pagesOf(listDepsOf(wide), { status }, 50);
      expect(pages.flat()).toEqual(expectedIds(wide, { status }));
    },
  );
});

describe('a page of large payloads', () => {
  const stored = storeMessages(Array.from({ length: 20 }, () => ['delivered'] as const)).map(
    ({ message, known }) => ({ message: { ...message, payload: 'x'.repeat(262_144) }, known }),
  );

  test('ends after a megabyte, and the next one goes on behind it', async () => {
    const pages = await pagesOf(listDepsOf(stored), {}, 10);
    expect(pages.map(({ length }) => length)).toEqual([4, 4, 4, 4, 4]);
    expect(pages.flat()).toEqual(expectedIds(stored, {}));
  });

  test('has no cursor when it ends with the last message', async () => {
    const four = listDepsOf(stored.slice(0, 4));
    expect(await pagesOf(four, { status: 'delivered' }, 10)).toHaveLength(1);
  });
});
