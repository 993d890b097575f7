import {
  attemptsIn,
  beginningOf,
  type CompanyMessages,
  countAttempt,
  countedAtMs,
  type CountedAttempt,
  HOUR_MS,
  MINUTE_MS,
  noAttempts,
  type WebhookMinute,
} from '@posthorn/domain/stats.ts';
import type { mongo } from 'mongoose';
import { randomUUID } from 'node:crypto';
import { Counter, type Registry } from 'prom-client';
import { createLoop } from '../../async/loop.ts';
import type { MemoryBudgets } from '../../memory/memory-budgets.ts';
import { monotonicClockMs } from '../../service/clock-and-ids.ts';
import { StoreUnavailableError } from '../../service/errors.ts';
import type { ServiceContext } from '../../service/run-service.ts';
import {
  type AppendCounts,
  bucketOf,
  createAppendCounts,
  type JournalEntry,
  journalTime,
  sizeOf,
} from './count-journal.ts';
import { slicesOf } from './stats-documents.ts';

type Context = Pick<ServiceContext<unknown>, 'registry' | 'lifecycle' | 'logger'>;

/** Whose attempt it was. */
export type AttemptOwners = Pick<WebhookMinute, 'companyId' | 'webhookId' | 'appId'>;

/** Counts attempts, for their webhook, its app, its company and the usage of the company. */
export interface AttemptCounter {
  add: (owners: AttemptOwners, counted: CountedAttempt) => void;
  /**
   * Resolves at once while there is memory for more counts. Otherwise it writes them, and rejects when MongoDB does not
   * store them; the caller must wait before it counts more.
   */
  makeRoom: () => Promise<void>;
}

/** Starts to count attempts. A stop writes what is left. */
export function openAttemptStats(context: Context, deps: CountBufferDeps): AttemptCounter {
  const { buffer, tick } = openBuffer(context, 'counts of attempts', deps);
  return {
    add: (owners, counted) => {
      buffer.countAttempt(owners, counted);
    },
    async makeRoom() {
      if (buffer.hasRoom()) return;
      await tick();
      if (!buffer.hasRoom()) throw new StoreUnavailableError('MongoDB did not take the counts');
    },
  };
}

/** An accepted message. */
export interface CountedMessage {
  companyId: string;
  /** Milliseconds since 1970. */
  createdAtMs: number;
  payloadBytes: number;
}

/** Counts accepted messages for their companies. */
export interface MessageCounter {
  add: (message: CountedMessage) => void;
  /** False when MongoDB has not taken counts for so long that no further message may be accepted. */
  hasRoom: () => boolean;
}

/** Starts to count accepted messages. A stop writes what is left. */
export function openMessageStats(context: Context, deps: CountBufferDeps): MessageCounter {
  const { buffer } = openBuffer(context, 'counts of messages', deps);
  return {
    add: (message) => {
      buffer.countMessage(message);
    },
    hasRoom: () => buffer.hasRoom(),
  };
}

/** Returns what counts attempts and messages that are missing in the statistics. */
export function createStatsMetrics(registry: Registry): (count: number) => void {
  const lost = new Counter({
    name: 'posthorn_stats_lost_total',
    help: 'Attempts and messages that are missing in statistics and usage: MongoDB was away at the stop.',
    registers: [registry],
  });
  return (count) => {
    lost.inc(count);
  };
}

interface CountBufferDeps {
  db: mongo.Db;
  budgets: MemoryBudgets;
  budgetBytes: number;
}

const EVERY_MS = 1_000;

function openBuffer(
  { registry, lifecycle, logger }: Context,
  name: string,
  { db, budgets, budgetBytes }: CountBufferDeps,
): { buffer: CountBuffer; tick: () => Promise<void> } {
  const buffer = new CountBuffer({
    budgetBytes,
    process: randomUUID(),
    append: createAppendCounts(db),
    monotonicMs: monotonicClockMs,
  });
  budgets.add('stats', budgetBytes, () => buffer.usedBytes());
  const countLost = createStatsMetrics(registry);
  const loop = createLoop({ name, everyMs: EVERY_MS, run: () => buffer.tick(), logger });
  loop.start();
  lifecycle.onStop(name, async () => {
    await loop.stop();
    const lost = await buffer.flush();
    if (lost === 0) return;
    countLost(lost);
    logger.warn(
      { lost, of: name },
      'stopped before MongoDB had all counts, they are missing in statistics and usage',
    );
  });
  return { buffer, tick: loop.tick };
}

interface BufferDeps {
  budgetBytes: number;
  /** Unique to this process: the ids of its entries contain it. */
  process: string;
  append: AppendCounts;
  monotonicMs: () => number;
}

/** The counts of a webhook in a minute, with its ids and its entry in the map, measured. */
const ATTEMPTS_BYTES = 1_200;
/** The same for the messages of a company in an hour. */
const MESSAGES_BYTES = 320;
/**
 * The age at which counts are written. A killed process loses the counts of this time. It is 50 ms for each document of
 * the last write, at most a minute, so that a process inserts about 20 documents a second.
 */
const MIN_AGE_MS = 5_000;
const MAX_AGE_MS = 60_000;
const MS_PER_ENTRY = 50;
/** 150 KB. */
const MAX_PER_ENTRY = 1_000;
/** Counts in one write: JSON of more would block the event loop for ten milliseconds. */
const MAX_PER_WRITE = 2_000;
/** When counts use this share of their memory, they are written whatever their age; new ones use the rest meanwhile. */
const FULL_SHARE = 2 / 3;
const PAUSE_AFTER_FAILURE_MS = 2_000;

/**
 * Counts in memory, which are written to the journal together. They are never dropped: `hasRoom` returns false when
 * nothing more should be counted, and counts that are added without room are kept.
 */
export class CountBuffer {
  readonly #deps: BufferDeps;
  #attempts = new Map<string, WebhookMinute>();
  #messages = new Map<string, CompanyMessages>();
  /** When the oldest of these was begun. */
  #sinceMs = 0;
  #waitMs = MIN_AGE_MS;
  /** They have their ids, and do not change: a document that MongoDB has, but did not confirm, is not added again. */
  #unwritten: JournalEntry[] = [];
  #unwrittenBytes = 0;
  #entriesMade = 0;
  #pausedUntilMs = -Infinity;

  constructor(deps: BufferDeps) {
    this.#deps = deps;
  }

  countAttempt(owners: AttemptOwners, counted: CountedAttempt): void {
    const { companyId, webhookId, appId } = owners;
    const minuteMs = beginningOf('minute', countedAtMs(counted));
    const key = `${webhookId}/${minuteMs / MINUTE_MS}`;
    let minute = this.#attempts.get(key);
    if (!minute) {
      this.#noteBegin();
      minute = { companyId, webhookId, appId, minuteMs, counts: noAttempts() };
      this.#attempts.set(key, minute);
    }
    countAttempt(minute.counts, counted);
  }

  countMessage({ companyId, createdAtMs, payloadBytes }: CountedMessage): void {
    const hourMs = beginningOf('hour', createdAtMs);
    const key = `${companyId}/${hourMs / HOUR_MS}`;
    let hour = this.#messages.get(key);
    if (!hour) {
      this.#noteBegin();
      hour = { companyId, hourMs, messages: 0, messageBytes: 0 };
      this.#messages.set(key, hour);
    }
    hour.messages += 1;
    hour.messageBytes += payloadBytes;
  }

  hasRoom(): boolean {
    return this.usedBytes() < this.#deps.budgetBytes;
  }

  usedBytes(): number {
    const ofMessages = this.#messages.size * MESSAGES_BYTES;
    return this.#attempts.size * ATTEMPTS_BYTES + ofMessages + this.#unwrittenBytes;
  }

  /** Writes the counts when they are old enough, or use much of the memory. When it rejects, they stay. */
  async tick(): Promise<void> {
    const nowMs = this.#deps.monotonicMs();
    if (nowMs < this.#pausedUntilMs) return;
    const isOld = this.#sums() > 0 && nowMs - this.#sinceMs >= this.#waitMs;
    if (isOld || this.usedBytes() >= this.#deps.budgetBytes * FULL_SHARE) this.#closeEntries();
    await this.#write();
  }

  /** Writes all counts. Returns how many attempts and messages are not written. */
  async flush(): Promise<number> {
    this.#closeEntries();
    await this.#write().catch(() => undefined);
    return this.#unwritten.reduce((sum, entry) => sum + countedIn(entry), 0);
  }

  #sums(): number {
    return this.#attempts.size + this.#messages.size;
  }

  #noteBegin(): void {
    if (this.#sums() === 0) this.#sinceMs = this.#deps.monotonicMs();
  }

  /** Makes documents of the sums. */
  #closeEntries(): void {
    const attempts = Map.groupBy(this.#attempts.values(), ({ companyId }) => bucketOf(companyId));
    const messages = Map.groupBy(this.#messages.values(), ({ companyId }) => bucketOf(companyId));
    const before = this.#unwritten.length;
    for (const [bucket, counts] of attempts)
      for (const some of slicesOf(counts, MAX_PER_ENTRY, () => 1))
        this.#unwritten.push(this.#newEntry(bucket, some, []));
    for (const [bucket, counts] of messages)
      for (const some of slicesOf(counts, MAX_PER_ENTRY, () => 1))
        this.#unwritten.push(this.#newEntry(bucket, [], some));
    this.#unwrittenBytes = this.usedBytes();
    this.#attempts = new Map();
    this.#messages = new Map();
    const waitMs = (this.#unwritten.length - before) * MS_PER_ENTRY;
    this.#waitMs = Math.min(Math.max(waitMs, MIN_AGE_MS), MAX_AGE_MS);
  }

  #newEntry(bucket: number, attempts: WebhookMinute[], messages: CompanyMessages[]): JournalEntry {
    this.#entriesMade += 1;
    const times = [
      ...attempts.map(({ minuteMs }) => minuteMs),
      ...messages.map(({ hourMs }) => hourMs),
    ];
    const earliest = journalTime(Math.min(...times));
    const id = `${earliest}/${this.#deps.process}/${this.#entriesMade}`;
    return { id, bucket, attempts, messages };
  }

  async #write(): Promise<void> {
    try {
      for (const some of slicesOf([...this.#unwritten], MAX_PER_WRITE, sizeOf)) {
        await this.#deps.append(some);
        this.#unwritten.splice(0, some.length);
        for (const entry of some) this.#unwrittenBytes -= bytesOf(entry);
      }
    } catch (error) {
      this.#pausedUntilMs = this.#deps.monotonicMs() + PAUSE_AFTER_FAILURE_MS;
      throw error;
    }
  }
}

function bytesOf({ attempts, messages }: JournalEntry): number {
  return attempts.length * ATTEMPTS_BYTES + messages.length * MESSAGES_BYTES;
}

function countedIn({ attempts, messages }: JournalEntry): number {
  const ofAttempts = attempts.reduce((sum, { counts }) => sum + attemptsIn(counts), 0);
  return messages.reduce((sum, counted) => sum + counted.messages, ofAttempts);
}
