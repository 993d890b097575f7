import {
  addCounts,
  type AttemptCounts,
  attemptsIn,
  beginningOf,
  type CompanyMessages,
  noAttempts,
  packCounts,
  type PackedCounts,
  successesIn,
  unpackCounts,
  type WebhookMinute,
} from '@posthorn/domain/stats.ts';
import type { mongo } from 'mongoose';
import { crc32 } from 'node:zlib';
import { collection } from '../collections.ts';
import { isDuplicateKey } from '../connect.ts';
import type { CountJournalDocument } from '../documents.ts';
import {
  createStatsStore,
  duplicatesOf,
  noUsage,
  type OwnerHour,
  type StatsOwnerKind,
  type StatsStore,
  type UsageCounts,
} from './stats-documents.ts';

/**
 * The journal stores the counts of all processes until they are added up. A process counts for tens of thousands of
 * companies and webhooks, one attempt for most of them: an update for each would be as many updates as attempts.
 * So it inserts a document for each bucket of companies, and one process adds up what all of them counted, with one
 * update for each webhook, app and company (docs/decisions/0035-roll-ups.md).
 */
const BUCKETS = 1_024;

/** The counts of a company are added up together, whatever process counted them. */
export function bucketOf(companyId: string): number {
  return crc32(companyId) % BUCKETS;
}

/** The beginning of the ids of what was counted in this minute; ids sort by it. */
export function journalTime(ms: number): string {
  return new Date(ms).toISOString().slice(0, 16);
}

/** The counts of one process for the companies of one bucket. */
export interface JournalEntry {
  /** As in CountJournalDocument. */
  id: string;
  bucket: number;
  attempts: readonly WebhookMinute[];
  messages: readonly CompanyMessages[];
}

export function sizeOf({
  attempts,
  messages,
}: Pick<JournalEntry, 'attempts' | 'messages'>): number {
  return attempts.length + messages.length;
}

type PackedMinute = [
  companyId: string,
  webhookId: string,
  appId: string | null,
  minuteMs: number,
  counts: PackedCounts,
];
type PackedMessages = [companyId: string, hourMs: number, messages: number, messageBytes: number];

function toDocument(entry: JournalEntry): CountJournalDocument {
  const attempts = entry.attempts.map(
    ({ companyId, webhookId, appId, minuteMs, counts }): PackedMinute => [
      companyId,
      webhookId,
      appId,
      minuteMs,
      packCounts(counts),
    ],
  );
  const messages = entry.messages.map(
    ({ companyId, hourMs, messages: count, messageBytes }): PackedMessages => [
      companyId,
      hourMs,
      count,
      messageBytes,
    ],
  );
  const counts = JSON.stringify([attempts, messages]);
  return { _id: entry.id, bucket: entry.bucket, counts };
}

function countsIn({ counts }: CountJournalDocument): Pick<JournalEntry, 'attempts' | 'messages'> {
  const [attempts, messages] = JSON.parse(counts) as [PackedMinute[], PackedMessages[]];
  return {
    attempts: attempts.map(([companyId, webhookId, appId, minuteMs, packed]) => {
      return { companyId, webhookId, appId, minuteMs, counts: unpackCounts(packed) };
    }),
    messages: messages.map(([companyId, hourMs, count, messageBytes]) => {
      return { companyId, hourMs, messages: count, messageBytes };
    }),
  };
}

/** Adds to the journal. An entry that is there already is left as it is, so that a repeated call adds nothing twice. */
export type AppendCounts = (entries: readonly JournalEntry[]) => Promise<void>;

export function createAppendCounts(db: mongo.Db): AppendCounts {
  const journal = collection(db, 'countJournal');
  return async (entries) => {
    await duplicatesOf(entries.map(toDocument), (documents) =>
      journal.insertMany([...documents], { ordered: false }),
    );
  };
}

/** Adds up the journal. Several processes may do that at once: each count is added once. */
export interface CountJournal {
  isEmpty: () => Promise<boolean>;
  /** Adds up some of what was counted in this bucket and those after it, the earliest first. */
  addUp: (fromBucket: number) => Promise<AddedUp>;
}

interface AddedUp {
  /** How many documents of statistics and usage were updated. */
  updates: number;
  /** The bucket from which to go on; null at the end of the journal. */
  next: number | null;
}

/** Sums that are added at once: 160 MB, measured. So many are of 100 companies with 50 busy webhooks each in an hour. */
const MAX_SUMS = 400_000;
/** Documents of a step, which take 4 s: a step must end within the lease of 15 s. */
const MAX_DOCUMENTS = 20_000;
const MOST_OF_STEP = { sums: MAX_SUMS, documents: MAX_DOCUMENTS };
/** The list of their ids is a document of 4 MB. */
const MAX_ENTRIES = 50_000;

/**
 * The journal is added up in steps, one after the other. A step names its entries before it adds any of them, and each
 * document of statistics has the number of the last step that was added to it: so the next process finishes the step of
 * one that died, and adds nothing twice.
 */
export function createCountJournal(
  db: mongo.Db,
  store: StatsStore = createStatsStore(db),
): CountJournal {
  const journal = collection(db, 'countJournal');
  const steps = collection(db, 'countSteps');

  /** Returns false when another process has begun a step. */
  async function begin(step: number, entries: string[]): Promise<boolean> {
    const last = { _id: STEP_ID, step: step - 1, entries: { $exists: false } };
    try {
      const set = { $set: { step, entries } };
      const { matchedCount, upsertedCount } = await steps.updateOne(last, set, {
        upsert: step === 1,
      });
      return matchedCount + upsertedCount === 1;
    } catch (error) {
      if (isDuplicateKey(error)) return false;
      throw error;
    }
  }

  async function finish(step: number, { ids, sums }: ReadEntries): Promise<number> {
    const hours = await keptOf(db, sums.hours());
    const usage = await keptOf(db, sums.usage());
    await store.addHours(hours, step);
    await store.addUsage(usage, step);
    await journal.deleteMany({ _id: { $in: ids } });
    await steps.updateOne({ _id: STEP_ID, step }, { $unset: { entries: 1 } });
    return hours.length + usage.length;
  }

  return {
    async isEmpty() {
      const any = { _id: { $gt: '' } };
      return (await journal.findOne(any, { projection: { _id: 1 } })) === null;
    },
    async addUp(fromBucket) {
      const { step, entries } = (await steps.findOne({ _id: STEP_ID })) ?? { step: 0 };
      if (entries) {
        const unfinished = await readEntries(journal.find({ _id: { $in: entries } }), null);
        return { updates: await finish(step, unfinished), next: fromBucket };
      }
      const found = journal.find({ bucket: { $gte: fromBucket } }).sort({ bucket: 1, _id: 1 });
      const read = await readEntries(found.limit(MAX_ENTRIES), MOST_OF_STEP);
      if (read.ids.length === 0) return { updates: 0, next: null };
      const isOurs = await begin(step + 1, read.ids);
      return {
        updates: isOurs ? await finish(step + 1, read) : 0,
        next: read.isEnd ? null : read.lastBucket,
      };
    },
  };
}

const STEP_ID = 'journal';

interface ReadEntries {
  ids: string[];
  /** Nothing was left in the journal. */
  isEnd: boolean;
  lastBucket: number;
  sums: Sums;
}

/** Adds up the entries while they are read, because they take more memory than their sums. */
async function readEntries(
  found: mongo.FindCursor<CountJournalDocument>,
  most: typeof MOST_OF_STEP | null,
): Promise<ReadEntries> {
  const read: ReadEntries = { ids: [], isEnd: false, lastBucket: 0, sums: createSums() };
  for await (const entry of found) {
    read.ids.push(entry._id);
    read.lastBucket = entry.bucket;
    read.sums.add(countsIn(entry));
    const { sums } = read;
    if (most && (sums.size() >= most.sums || sums.documents() >= most.documents)) return read;
  }
  read.isEnd = read.ids.length < MAX_ENTRIES;
  return read;
}

/** Nothing is counted for a company that is being removed, or is removed: nobody would remove it again. */
async function keptOf<Value extends { companyId: string }>(
  db: mongo.Db,
  values: readonly Value[],
): Promise<Value[]> {
  const ids = [...new Set(values.map(({ companyId }) => companyId))];
  const found = collection(db, 'companies').find({
    _id: { $in: ids },
    removalAt: { $exists: false },
  });
  const kept = await found.project<{ _id: string }>({ _id: 1 }).toArray();
  const keptIds = new Set(kept.map(({ _id }) => _id));
  return values.filter(({ companyId }) => keptIds.has(companyId));
}

export interface Sums {
  add: (entry: Pick<JournalEntry, 'attempts' | 'messages'>) => void;
  /** How many minutes and hours it has, of any owner. */
  size: () => number;
  /** How many documents are updated for it. */
  documents: () => number;
  /** Returns the hours of each webhook, app and company. */
  hours: () => OwnerHour[];
  /** Returns the usage of each company. */
  usage: () => UsageCounts[];
}

export function createSums(): Sums {
  const hours = new Map<string, OwnerHour>();
  const usage = new Map<string, UsageCounts>();
  let minutes = 0;
  return {
    add({ attempts, messages }) {
      for (const counted of attempts) {
        minutes += addAttempts(hours, counted);
        addUsage(usage, usageOf(counted));
      }
      for (const { companyId, hourMs, ...counted } of messages) {
        addUsage(usage, { ...noUsage(companyId, hourMs), ...counted });
      }
    },
    size: () => minutes + usage.size,
    documents: () => hours.size + usage.size,
    hours: () => [...hours.values()],
    usage: () => [...usage.values()],
  };
}

/** Returns how many minutes it began. */
function addAttempts(hours: Map<string, OwnerHour>, counted: WebhookMinute): number {
  let begun = 0;
  const { companyId, webhookId, appId, minuteMs, counts } = counted;
  const hourMs = beginningOf('hour', minuteMs);
  const add = (kind: StatsOwnerKind, ownerId: string): void => {
    const key = `${ownerId}/${hourMs}`;
    let hour = hours.get(key);
    if (!hour) {
      hour = { kind, ownerId, companyId, hourMs, minutes: new Map<number, AttemptCounts>() };
      hours.set(key, hour);
    }
    let minute = hour.minutes.get(minuteMs);
    if (!minute) {
      minute = noAttempts();
      hour.minutes.set(minuteMs, minute);
      begun += 1;
    }
    addCounts(minute, counts);
  };
  add('webhook', webhookId);
  if (appId !== null) add('app', appId);
  add('company', companyId);
  return begun;
}

function usageOf({ companyId, minuteMs, counts }: WebhookMinute): UsageCounts {
  return {
    ...noUsage(companyId, beginningOf('hour', minuteMs)),
    deliveries: counts.firstAttempts,
    attempts: attemptsIn(counts),
    succeeded: successesIn(counts),
    sentBytes: counts.payloadBytes,
  };
}

function addUsage(usage: Map<string, UsageCounts>, more: UsageCounts): void {
  const key = `${more.companyId}/${more.hourMs}`;
  const sum = usage.get(key);
  if (!sum) {
    usage.set(key, more);
    return;
  }
  sum.messages += more.messages;
  sum.messageBytes += more.messageBytes;
  sum.deliveries += more.deliveries;
  sum.attempts += more.attempts;
  sum.succeeded += more.succeeded;
  sum.sentBytes += more.sentBytes;
}
