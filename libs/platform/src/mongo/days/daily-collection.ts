import { DAY_MS, dayName, dayNumberOf, firstIdAt, timeMsOf } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';

/** Where messages and deliveries are. Times are in milliseconds since 1970. */
export interface DayLayout {
  /**
   * Documents whose id has this time or a later one are in the collection of their day, earlier ones in
   * the old collection. Infinity when all are there.
   */
  beginMs: number;
  /** How long documents are kept. */
  retentionMs: number;
}

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
  /** The old collection, if it may have documents that were made at this time or later; null otherwise. */
  beforeSince: (ms: number) => mongo.Collection<Document> | null;
  /** False for a document that has expired and is dropped with its day later. */
  isKept: (id: string) => boolean;
  /** Returns the span of ids of this kind without those that have expired. */
  kept: (span: IdSpan, prefix: 'msg' | 'dlv') => KeptSpan;
}

interface DailyCollectionDeps<Document extends mongo.Document> {
  /** The old collection. */
  before: mongo.Collection<Document>;
  /** The database that has a collection for each day. */
  days: mongo.Db;
  layout: () => DayLayout;
  nowMs: () => number;
}

/** The clock that made an id may be ahead by so much. What it made is still found by lists and sweeps. */
const AHEAD_MS = DAY_MS;
/** Stands for the old collection among numbers of days: it is older than all of them. */
const BEFORE = -Infinity;

export function createDailyCollection<Document extends mongo.Document>({
  before,
  days,
  layout,
  nowMs,
}: DailyCollectionDeps<Document>): DailyCollection<Document> {
  const collectionOf = (day: number): mongo.Collection<Document> =>
    day === BEFORE ? before : days.collection<Document>(dayName(day));

  return {
    of: (id) => collectionOf(dayOf(id, layout().beginMs)),
    group(items, idOf) {
      const { beginMs } = layout();
      if (beginMs === Infinity && items.length > 0) return [{ documents: before, items }];
      const groups = [...groupByDay(items, (item) => dayOf(idOf(item), beginMs))];
      return groups
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([day, ofDay]) => ({ documents: collectionOf(day), items: ofDay }));
    },
    within(span) {
      const { beginMs, oldestMs, newestMs } = boundsOf(span, layout(), nowMs());
      const found = oldestMs < beginMs ? [before] : [];
      const newest = dayNumberOf(newestMs);
      let day = dayNumberOf(Math.max(oldestMs, beginMs));
      for (; day <= newest; day += 1) found.push(collectionOf(day));
      return found;
    },
    beforeSince: (ms) => (ms < layout().beginMs ? before : null),
    isKept(id) {
      const { beginMs, retentionMs } = layout();
      const ms = timeMsOf(id);
      return ms < beginMs || ms >= nowMs() - retentionMs;
    },
    kept({ fromId = '', beforeId }, prefix) {
      const { beginMs, retentionMs } = layout();
      const keptMs = nowMs() - retentionMs;
      // The old collection removes what has expired.
      const firstKept = keptMs < beginMs ? '' : firstIdAt(prefix, keptMs);
      return { fromId: fromId > firstKept ? fromId : firstKept, beforeId };
    },
  };
}

function dayOf(id: string, beginMs: number): number {
  const ms = timeMsOf(id);
  return ms < beginMs ? BEFORE : dayNumberOf(ms);
}

function boundsOf(
  { fromId, beforeId }: IdSpan,
  { beginMs, retentionMs }: DayLayout,
  nowMs: number,
) {
  const keptMs = nowMs - retentionMs;
  const fromMs = fromId ? timeMsOf(fromId) : keptMs;
  // When `fromId` comes from a clock that is further ahead, the ids that follow it come from that clock too.
  const futureMs = Math.max(nowMs, fromMs) + AHEAD_MS;
  // A text that spells no time, such as '' or '~', is no bound.
  const beforeMs = beforeId ? timeMsOf(beforeId) : -1;
  return {
    beginMs,
    oldestMs: Math.max(fromMs, keptMs),
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
