import { DAY_MS, dayName, dayNumberOf, firstIdAt, timeMsOf } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import type { DatabaseTime } from '../database-time.ts';

/** Where messages and deliveries are. Times are in milliseconds since 1970. */
export interface DayLayout {
  /** No document is older: lists do not read the days before. */
  beginMs: number;
  /** How long documents are kept. */
  retentionMs: number;
}

/**
 * The time of the database decides what is kept, so that all processes agree. The earlier one of the database's and of
 * this process's time decides which days are not to be dropped.
 */
export type DayClock = Pick<DatabaseTime, 'nowMs' | 'earlierMs'>;

/** Bounds of ids: `fromId` is inclusive, `beforeId` is exclusive. */
interface IdSpan {
  fromId?: string | undefined;
  beforeId?: string | undefined;
}

/** `fromId` is '' where nothing bounds the span. */
interface KeptSpan {
  fromId: string;
  beforeId: string | undefined;
}

interface DayGroup<Document extends mongo.Document, Item> {
  documents: mongo.Collection<Document>;
  items: readonly Item[];
}

/** Documents that are spread over one collection for each day. The id alone decides which one has a document. */
export interface DailyCollection<Document extends mongo.Document> {
  /** The collection that has the document of this id, if there is one. */
  of: (id: string) => mongo.Collection<Document>;
  /** The items by their collections, those of the oldest day first. */
  group: <Item>(items: readonly Item[], idOf: (item: Item) => string) => DayGroup<Document, Item>[];
  /** The collections that may have documents of these ids and are not to be dropped, the oldest first. */
  within: (span: IdSpan) => mongo.Collection<Document>[];
  /** False for a document that has expired: it is dropped with its day, or removed soon after its `removeAt`. */
  isKept: (id: string, removeAt?: Date) => boolean;
  /** The same as a filter, for a query whose page would be too short without it. */
  notRemoved: () => { removeAt: { $not: { $lte: Date } } };
  /** Returns the span of ids of this kind without those that have expired, or will within `forMs` milliseconds. */
  kept: (span: IdSpan, prefix: 'msg' | 'dlv', forMs?: number) => KeptSpan;
}

interface DailyCollectionDeps extends DayClock {
  /** The database that has a collection for each day. */
  days: mongo.Db;
  layout: () => DayLayout;
}

/** The clock that made an id may be ahead by so much. Lists and sweeps still find what it made. */
const AHEAD_MS = DAY_MS;

export function createDailyCollection<Document extends mongo.Document>({
  days,
  layout,
  nowMs,
  earlierMs,
}: DailyCollectionDeps): DailyCollection<Document> {
  const collectionOf = (day: number): mongo.Collection<Document> =>
    days.collection<Document>(dayName(day));
  const keptMs = (): number => nowMs() - layout().retentionMs;

  return {
    of: (id) => collectionOf(dayOf(id)),
    group(items, idOf) {
      const groups = [...groupByDay(items, (item) => dayOf(idOf(item)))];
      return groups
        .sort(([a], [b]) => a - b)
        .map(([day, ofDay]) => ({ documents: collectionOf(day), items: ofDay }));
    },
    within(span) {
      const { oldestMs, newestMs } = boundsOf(span, layout(), {
        nowMs: nowMs(),
        earlierMs: earlierMs(),
      });
      const first = dayNumberOf(oldestMs);
      const count = Math.max(0, dayNumberOf(newestMs) - first + 1);
      return Array.from({ length: count }, (_, n) => collectionOf(first + n));
    },
    isKept: (id, removeAt) =>
      timeMsOf(id) >= keptMs() && !(removeAt && removeAt.getTime() <= nowMs()),
    notRemoved: () => ({ removeAt: { $not: { $lte: new Date(nowMs()) } } }),
    kept({ fromId = '', beforeId }, prefix, forMs = 0) {
      const firstKept = firstIdAt(prefix, keptMs() + forMs);
      return { fromId: fromId > firstKept ? fromId : firstKept, beforeId };
    },
  };
}

const dayOf = (id: string): number => dayNumberOf(timeMsOf(id));

function boundsOf(
  { fromId, beforeId }: IdSpan,
  { beginMs, retentionMs }: DayLayout,
  { nowMs, earlierMs }: { nowMs: number; earlierMs: number },
): { oldestMs: number; newestMs: number } {
  const keptMs = earlierMs - retentionMs;
  const fromMs = fromId ? timeMsOf(fromId) : keptMs;
  // When `fromId` comes from a clock that is further ahead, the ids that follow it come from that clock too.
  const futureMs = Math.max(nowMs, fromMs) + AHEAD_MS;
  // A text that spells no time, such as '' or '~', is no bound.
  const beforeMs = beforeId ? timeMsOf(beforeId) : -1;
  return {
    oldestMs: Math.max(fromMs, keptMs, beginMs),
    newestMs: beforeMs >= 0 ? Math.min(beforeMs, futureMs) : futureMs,
  };
}

/** Nearly every batch is of one day: then no item is copied. */
function groupByDay<Item>(
  items: readonly Item[],
  dayOf: (item: Item) => number,
): Iterable<[number, readonly Item[]]> {
  const [first] = items;
  if (first === undefined) return [];
  const day = dayOf(first);
  if (items.every((item) => dayOf(item) === day)) return [[day, items]];
  return Map.groupBy(items, dayOf);
}
