import { describe, expect, test } from '@jest/globals';
import type { DeliveryStatus } from '@posthorn/domain/delivery.ts';
import { createIdFactory, deliveryIdOf, timeMsOf } from '@posthorn/domain/ids.ts';
import { messageStatus, statusBeforeAttempts, type Message } from '@posthorn/domain/message.ts';
import type { DeliveryOutline } from '@posthorn/platform/mongo/delivery-queries.ts';
import fc from 'fast-check';
import { sampleMessage } from '../../../test/support/sample-message.ts';
import { listMessages, type ListDeps, type MessageQuery } from './list-messages.ts';

const START_MS = 1_700_000_000_000;
const STATUSES = ['pending', 'delivered', 'exhausted', 'cancelled'] as const;

/** What is stored of one message: `none` is a delivery without a document. */
interface Stored {
  message: Message;
  known: (DeliveryOutline & { messageId: string; appId: string | null })[];
}

type Shape = readonly (DeliveryStatus | 'none')[];

/** Some messages share their millisecond. */
function store(shapes: readonly Shape[]): Stored[] {
  let made = 0;
  const nowMs = (): number => START_MS + Math.floor((made += 1) / 2);
  const newId = createIdFactory({ nowMs, randomBytes: (size) => Buffer.alloc(size) });
  return shapes.map((shape, n) => {
    const targets = shape.map((_, index) => `wh_${index}`);
    const message = sampleMessage(newId('msg'), { targets, appId: n % 3 === 0 ? 'app_1' : null });
    const known = shape.flatMap((status, index) => {
      const webhookId = `wh_${index}`;
      const id = deliveryIdOf(message.id, webhookId);
      const own = { id, messageId: message.id, appId: message.appId, webhookId };
      return status === 'none' ? [] : [{ ...own, status, attemptCount: 1, updatedAtMs: 1 }];
    });
    return { message, known };
  });
}

const descending = (a: string, b: string): number => (a < b ? 1 : -1);

/** The two stores in memory; `reads` counts the entries that were read. */
function depsOf(stored: readonly Stored[], reads = { count: 0 }): ListDeps {
  const all = stored.map(({ message }) => message);
  const known = stored.flatMap((each) => each.known);
  const within = (id: string, { fromId, beforeId }: { fromId?: string; beforeId?: string }) =>
    (fromId === undefined || id >= fromId) && (beforeId === undefined || id < beforeId);
  const read = <T>(found: T[]): Promise<T[]> => {
    reads.count += found.length;
    return Promise.resolve(found);
  };
  return {
    messages: {
      listOutlines: (_company, { appId, webhookId, ...range }, limit) =>
        read(
          all
            .filter(({ id }) => within(id, range as { fromId?: string }))
            .filter((each) => appId === undefined || each.appId === appId)
            .filter(({ targets }) => webhookId === undefined || targets.includes(webhookId))
            .sort((a, b) => descending(a.id, b.id))
            .slice(0, limit),
        ),
      outlinesOf: (_company, ids) => Promise.resolve(all.filter(({ id }) => ids.includes(id))),
      findMany: (_company, ids) => Promise.resolve(all.filter(({ id }) => ids.includes(id))),
    },
    deliveries: {
      outlinesOf: (_company, ids) => {
        const wanted = new Set(ids);
        return Promise.resolve(known.filter(({ id }) => wanted.has(id)));
      },
      messagesOfFailed: (_company, { status, appId, ...range }, limit) =>
        read(
          known
            .filter((each) => each.status === status)
            .filter(({ messageId }) => within(messageId, range as { fromId?: string }))
            .filter((each) => appId === undefined || each.appId === appId)
            .map(({ messageId }) => messageId)
            .sort(descending)
            .slice(0, limit),
        ),
    },
  };
}

function statusOf({ message, known }: Stored): DeliveryStatus {
  return messageStatus(
    message.targets.map(
      (to) =>
        known.find(({ webhookId }) => webhookId === to)?.status ??
        statusBeforeAttempts(message, to),
    ),
  );
}

type Filter = Omit<MessageQuery, 'limit' | 'cursor'>;

/** The rule without pages, indexes and bounds of work. */
function expectedIds(stored: readonly Stored[], filter: Filter): string[] {
  const { appId, webhookId, status, fromMs = 0, toMs = Infinity } = filter;
  return stored
    .filter((each) => status === undefined || statusOf(each) === status)
    .map(({ message }) => message)
    .filter((each) => appId === undefined || each.appId === appId)
    .filter(({ targets }) => webhookId === undefined || targets.includes(webhookId))
    .filter(({ createdAtMs }) => createdAtMs >= fromMs && createdAtMs <= toMs)
    .map(({ id }) => id)
    .sort(descending);
}

/** Follows the cursors to the end. */
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

const shape = fc.array(fc.constantFrom(...STATUSES, 'none' as const), { maxLength: 4 });
const atMs = fc.option(fc.integer({ min: START_MS - 2, max: START_MS + 14 }), { nil: undefined });
const filters = fc.record({
  appId: fc.constantFrom(undefined, 'app_1'),
  webhookId: fc.constantFrom(undefined, 'wh_0', 'wh_2'),
  status: fc.constantFrom(undefined, ...STATUSES),
  fromMs: atMs,
  toMs: atMs,
});

describe('the list of messages', () => {
  test('joined from its pages is every message that fits, newest first, for every filter', async () => {
    const shapes = fc.array(shape, { maxLength: 24 });
    const limits = fc.integer({ min: 1, max: 5 });
    const holds = fc.asyncProperty(shapes, filters, limits, async (given, filter, limit) => {
      const stored = store(given);
      const pages = await pagesOf(depsOf(stored), filter, limit);
      expect(pages.flat()).toEqual(expectedIds(stored, filter));
      for (const page of pages) expect(page.length).toBeLessThanOrEqual(limit);
    });
    await fc.assert(holds, { numRuns: 500 });
  });

  test('shows with each message those of its deliveries that have a document', async () => {
    const stored = store([['delivered', 'none', 'pending']]);
    const { messages } = await listMessages(depsOf(stored), 'comp_a', { limit: 1 });
    expect(messages.map(({ known }) => known.map(({ webhookId }) => webhookId))).toEqual([
      ['wh_0', 'wh_2'],
    ]);
  });

  test('has no cursor behind its last page, also when that is full', async () => {
    const deps = depsOf(store([['delivered'], ['delivered']]));
    const { nextCursor } = await listMessages(deps, 'comp_a', { limit: 2 });
    expect(nextCursor).toBeNull();
  });

  test('includes both bounds', async () => {
    const stored = store([['delivered'], ['delivered'], ['delivered'], ['delivered']]);
    const [, at = ''] = stored.map(({ message }) => message.id);
    const [fromMs, toMs] = [timeMsOf(at), timeMsOf(at)];
    const [ids] = await pagesOf(depsOf(stored), { fromMs, toMs }, 5);
    expect(ids).toEqual(expectedIds(stored, { fromMs, toMs }));
    expect(ids).toContain(at);
  });
});

describe('a page of a rare status', () => {
  const many = (count: number, rest: Shape): Stored[] => store(Array<Shape>(count).fill(rest));

  test.each([
    ['pending', many(10_700, ['delivered'])],
    ['cancelled', many(10_700, ['exhausted', 'cancelled'])],
  ] as const)('stops looking after 10,000: %s', async (status, stored) => {
    const [oldest] = stored;
    Object.assign(oldest?.known[0] ?? {}, { status });
    const reads = { count: 0 };
    const deps = depsOf(stored, reads);
    const first = await listMessages(deps, 'comp_a', { status, limit: 5 });
    expect([first.messages, reads.count]).toEqual([[], 10_000]);
    const pages = await pagesOf(deps, { status }, 5);
    expect(pages).toEqual([[], [oldest?.message.id]]);
  });

  test('is not held up by one message that failed at more webhooks than one look takes', async () => {
    const wide = store([['exhausted'], Array<DeliveryStatus>(1_200).fill('exhausted')]);
    const pages = await pagesOf(depsOf(wide), { status: 'exhausted' }, 1);
    expect(pages.flat()).toEqual(expectedIds(wide, {}));
  });
});
