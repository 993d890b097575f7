import {
  addCounts,
  attemptsIn,
  beginningOf,
  countAttempt,
  countedAtMs,
  type CountedAttempt,
  MINUTE_MS,
  noAttempts,
} from '@posthorn/domain/stats.ts';
import type { mongo } from 'mongoose';
import { Counter, type Registry } from 'prom-client';
import { createLoop } from '../../async/loop.ts';
import type { MemoryBudgets } from '../../memory/memory-budgets.ts';
import { monotonicClockMs } from '../../service/clock-and-ids.ts';
import type { ServiceContext } from '../../service/run-service.ts';
import {
  createStatsStore,
  type MinuteCounts,
  type StatsOwnerKind,
  type UsageCounts,
} from './stats-documents.ts';

/** Two maps of numbers, the ids and the entry in the map: an estimate, not measured. */
const MINUTE_BYTES = 1_024;
const USAGE_BYTES = 320;
const USAGE_BUDGET_BYTES = 4 * 2 ** 20;
const EVERY_MS = 1_000;

type Context = Pick<ServiceContext<unknown>, 'registry' | 'lifecycle' | 'logger'>;

/** Whose attempt it was. */
interface AttemptOwners {
  companyId: string;
  webhookId: string;
  /** The app of the webhook; null for a global one. */
  appId: string | null;
}

/** Counts an attempt for its webhook, its app and its company. */
export type CountAttempt = (owners: AttemptOwners, counted: CountedAttempt) => void;

/** Starts to count attempts. A stop writes what is left. */
export function openAttemptStats(
  context: Context,
  { db, budgets, budgetBytes }: { db: mongo.Db; budgets: MemoryBudgets; budgetBytes: number },
): CountAttempt {
  const lost = createStatsMetrics(context.registry);
  const minutes = openSums<MinuteCounts>(context, budgets, lost, {
    name: 'statistics of attempts',
    part: 'stats',
    budgetBytes,
    valueBytes: MINUTE_BYTES,
    write: createStatsStore(db).addMinutes,
    add(sum, more) {
      addCounts(sum.counts, more.counts);
    },
    keyOf: keyOfMinute,
    sizeOf: ({ counts }) => attemptsIn(counts),
  });
  const usageAt = openUsage(context, db, budgets, lost);

  function countFor(
    kind: StatsOwnerKind,
    ownerId: string,
    companyId: string,
    counted: CountedAttempt,
  ): void {
    const minuteMs = beginningOf('minute', countedAtMs(counted));
    const sum = minutes.sumOf(keyOfMinute({ ownerId, minuteMs }), () => ({
      kind,
      ownerId,
      companyId,
      minuteMs,
      counts: noAttempts(),
    }));
    if (sum) countAttempt(sum.counts, counted);
    else lost(1);
  }

  return ({ companyId, webhookId, appId }, counted) => {
    countFor('webhook', webhookId, companyId, counted);
    if (appId !== null) countFor('app', appId, companyId, counted);
    countFor('company', companyId, companyId, counted);
    const usage = usageAt(companyId, countedAtMs(counted));
    if (!usage) return;
    const { attempt, payloadBytes } = counted;
    usage.attempts += 1;
    usage.sentBytes += payloadBytes;
    if (attempt.number === 1) usage.deliveries += 1;
    if (attempt.outcome === 'success') usage.succeeded += 1;
  };
}

/** An accepted message. */
export interface CountedMessage {
  companyId: string;
  /** Milliseconds since 1970. */
  createdAtMs: number;
  payloadBytes: number;
}

/** Counts a message for its company. */
export type CountMessage = (message: CountedMessage) => void;

/** Starts to count accepted messages. A stop writes what is left. */
export function openMessageStats(
  context: Context,
  { db, budgets }: { db: mongo.Db; budgets: MemoryBudgets },
): CountMessage {
  const usageAt = openUsage(context, db, budgets, createStatsMetrics(context.registry));
  return ({ companyId, createdAtMs, payloadBytes }) => {
    const usage = usageAt(companyId, createdAtMs);
    if (!usage) return;
    usage.messages += 1;
    usage.messageBytes += payloadBytes;
  };
}

/** Returns what counts attempts and messages that are missing in the statistics. */
export function createStatsMetrics(registry: Registry): (count: number) => void {
  const lost = new Counter({
    name: 'posthorn_stats_lost_total',
    help: 'Attempts and messages that are missing in a statistic: its memory was full, or MongoDB was away at the stop.',
    registers: [registry],
  });
  return (count) => {
    lost.inc(count);
  };
}

/** Returns the usage of a company in the hour of a time; null, and counts one as lost, without memory for it. */
type UsageAt = (companyId: string, ms: number) => UsageCounts | null;

function openUsage(
  context: Context,
  db: mongo.Db,
  budgets: MemoryBudgets,
  lost: (count: number) => void,
): UsageAt {
  const sums = openSums<UsageCounts>(context, budgets, lost, {
    name: 'usage of companies',
    part: 'usage',
    budgetBytes: USAGE_BUDGET_BYTES,
    valueBytes: USAGE_BYTES,
    write: createStatsStore(db).addUsage,
    add(sum, more) {
      for (const name of Object.keys(NO_USAGE) as (keyof typeof NO_USAGE)[])
        sum[name] += more[name];
    },
    keyOf: keyOfUsage,
    sizeOf: ({ attempts, messages }) => attempts + messages,
  });
  return (companyId, ms) => {
    const hourMs = beginningOf('hour', ms);
    const sum = sums.sumOf(keyOfUsage({ companyId, hourMs }), () => noUsage(companyId, hourMs));
    if (!sum) lost(1);
    return sum;
  };
}

const NO_USAGE = {
  messages: 0,
  messageBytes: 0,
  deliveries: 0,
  attempts: 0,
  succeeded: 0,
  sentBytes: 0,
};

export function noUsage(companyId: string, hourMs: number): UsageCounts {
  return { companyId, hourMs, ...NO_USAGE };
}

function keyOfMinute({ ownerId, minuteMs }: Pick<MinuteCounts, 'ownerId' | 'minuteMs'>): string {
  return `${ownerId}/${minuteMs / MINUTE_MS}`;
}

function keyOfUsage({ companyId, hourMs }: Pick<UsageCounts, 'companyId' | 'hourMs'>): string {
  return `${companyId}/${hourMs}`;
}

interface SumsDeps<Value> extends Omit<WriteBehindDeps<Value>, 'monotonicMs'> {
  /** Names the loop that writes them. */
  name: string;
  /** The label of their memory budget. */
  part: string;
  /** How many attempts or messages a sum stands for. */
  sizeOf: (value: Value) => number;
}

/** Writes the sums every second, and what is left at the stop. */
function openSums<Value>(
  { lifecycle, logger }: Context,
  budgets: MemoryBudgets,
  lost: (count: number) => void,
  { name, part, sizeOf, ...deps }: SumsDeps<Value>,
): WriteBehind<Value> {
  const sums = new WriteBehind({ ...deps, monotonicMs: monotonicClockMs });
  budgets.add(part, deps.budgetBytes, () => sums.usedBytes());
  const loop = createLoop({ name, everyMs: EVERY_MS, run: () => sums.tick(), logger });
  loop.start();
  lifecycle.onStop(name, async () => {
    await loop.stop();
    const left = await sums.flush();
    const count = left.reduce((sum, value) => sum + sizeOf(value), 0);
    if (count === 0) return;
    lost(count);
    logger.warn({ lost: count, of: name }, 'stopped before everything was counted in MongoDB');
  });
  return sums;
}

interface WriteBehindDeps<Value> {
  /** What the values may use in memory, and what one of them uses, by estimate. */
  budgetBytes: number;
  valueBytes: number;
  /** Adds them to what is stored. Resolves with those that were refused. */
  write: (values: readonly Value[]) => Promise<readonly Value[]>;
  /** Adds the second to the first, in place. */
  add: (sum: Value, more: Value) => void;
  keyOf: (value: Value) => string;
  monotonicMs: () => number;
}

/**
 * A sum waits this long for more: with 20 endpoints at 650 attempts/s it is written once for 160 of them. What a
 * killed process had not written is lost.
 */
const MIN_AGE_MS = 5_000;
/**
 * How many sums that are old enough are written in a tick, oldest first. There is one tick a second, so that
 * statistics add 100 updates a second in each process, however many endpoints there are.
 */
const PER_TICK = 100;
/**
 * Sums of this age are written in any case, beyond that number: a company is removed two minutes after it was
 * suspended, and nothing may be counted for it after that.
 */
const MAX_AGE_MS = 45_000;
const PAUSE_AFTER_FAILURE_MS = 10_000;

/** Sums in one write: more would block the event loop for a tenth of a second. */
const MAX_PER_WRITE = 500;

/** Sums in memory that are written together. Counting costs no write: a key's sum of some seconds is one update. */
export class WriteBehind<Value> {
  readonly #deps: WriteBehindDeps<Value>;
  readonly #maxSums: number;
  /** In the order in which they were begun. */
  readonly #sums = new Map<string, { value: Value; sinceMs: number }>();
  #writing = 0;
  #pausedUntilMs = -Infinity;

  constructor(deps: WriteBehindDeps<Value>) {
    this.#deps = deps;
    this.#maxSums = Math.floor(deps.budgetBytes / deps.valueBytes);
  }

  /** Returns the sum with this key, which may be added to at once; null when there is no room for a new one. */
  sumOf(key: string, create: () => Value): Value | null {
    const known = this.#sums.get(key);
    if (known) return known.value;
    if (this.#sums.size + this.#writing >= this.#maxSums) return null;
    const value = create();
    this.#sums.set(key, { value, sinceMs: this.#deps.monotonicMs() });
    return value;
  }

  /** Writes the sums that are old enough. When it rejects they stay, and the next ticks pause. */
  async tick(): Promise<void> {
    if (this.#deps.monotonicMs() < this.#pausedUntilMs) return;
    let due: Value[];
    do {
      due = this.#takeDue();
      await this.#write(due);
    } while (due.length === MAX_PER_WRITE);
  }

  /** Writes all sums. Returns those that are not written. */
  async flush(): Promise<readonly Value[]> {
    await this.#write(this.#takeAll()).catch(() => undefined);
    return this.#takeAll();
  }

  usedBytes(): number {
    return (this.#sums.size + this.#writing) * this.#deps.valueBytes;
  }

  #takeDue(): Value[] {
    const nowMs = this.#deps.monotonicMs();
    const due: Value[] = [];
    for (const [key, { value, sinceMs }] of this.#sums) {
      const ageMs = nowMs - sinceMs;
      if (ageMs < MIN_AGE_MS || due.length === MAX_PER_WRITE) break;
      if (due.length >= PER_TICK && ageMs < MAX_AGE_MS) break;
      this.#sums.delete(key);
      due.push(value);
    }
    return due;
  }

  #takeAll(): Value[] {
    const all = [...this.#sums.values()].map(({ value }) => value);
    this.#sums.clear();
    return all;
  }

  async #write(values: readonly Value[]): Promise<void> {
    if (values.length === 0) return;
    this.#writing += values.length;
    let left = values;
    try {
      left = await this.#deps.write(values);
    } catch (error) {
      this.#pausedUntilMs = this.#deps.monotonicMs() + PAUSE_AFTER_FAILURE_MS;
      throw error;
    } finally {
      this.#writing -= values.length;
      for (const value of left) this.#putBack(value);
    }
  }

  #putBack(value: Value): void {
    const { keyOf, add, monotonicMs } = this.#deps;
    const key = keyOf(value);
    const sum = this.#sums.get(key);
    if (sum) add(sum.value, value);
    else this.#sums.set(key, { value, sinceMs: monotonicMs() });
  }
}
