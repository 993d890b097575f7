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

/** Starts to count attempts. A stop writes what is left. */
export function openAttemptStats(
  context: Context,
  { db, budgets, budgetBytes }: { db: mongo.Db; budgets: MemoryBudgets; budgetBytes: number },
): CountAttempt {
  const store = createStatsStore(db);
  const onLost = createStatsMetrics(context.registry);
  const minutes = createWriteBehind<MinuteCounts>({
    budgetBytes,
    valueBytes: MINUTE_BYTES,
    write: store.addMinutes,
    add: addMinute,
    keyOf: keyOfMinute,
    monotonicMs: monotonicClockMs,
  });
  budgets.add('stats', budgetBytes, minutes.usedBytes);
  const usage = openUsage(db, budgets);
  keepWriting(context, 'statistics of attempts', {
    written: minutes,
    sizeOf: sizeOfMinute,
    onLost,
  });
  keepWriting(context, 'usage of companies', { written: usage, sizeOf: sizeOfUsage, onLost });
  return createCountAttempts({ minutes, usage, onLost });
}

/** Starts to count accepted messages. A stop writes what is left. */
export function openMessageStats(
  context: Context,
  { db, budgets }: { db: mongo.Db; budgets: MemoryBudgets },
): CountMessage {
  const usage = openUsage(db, budgets);
  const onLost = createStatsMetrics(context.registry);
  keepWriting(context, 'usage of companies', { written: usage, sizeOf: sizeOfUsage, onLost });
  return createCountMessages({ usage, onLost });
}

function openUsage(db: mongo.Db, budgets: MemoryBudgets): WriteBehind<UsageCounts> {
  const usage = createWriteBehind<UsageCounts>({
    budgetBytes: USAGE_BUDGET_BYTES,
    valueBytes: USAGE_BYTES,
    write: createStatsStore(db).addUsage,
    add: addUsage,
    keyOf: keyOfUsage,
    monotonicMs: monotonicClockMs,
  });
  budgets.add('usage', USAGE_BUDGET_BYTES, usage.usedBytes);
  return usage;
}

/** Returns what counts attempts and messages that are lost to the statistics. */
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

interface Written<Value> {
  written: WriteBehind<Value>;
  sizeOf: (value: Value) => number;
  onLost: (count: number) => void;
}

function keepWriting<Value>(
  { lifecycle, logger }: Context,
  name: string,
  { written, sizeOf, onLost }: Written<Value>,
): void {
  const loop = createLoop({ name, everyMs: EVERY_MS, run: written.tick, logger });
  loop.start();
  lifecycle.onStop(name, async () => {
    await loop.stop();
    const left = await written.flush();
    const lost = left.reduce((sum, value) => sum + sizeOf(value), 0);
    if (lost === 0) return;
    onLost(lost);
    logger.warn({ lost, of: name }, 'stopped before everything was counted in MongoDB');
  });
}

/** Whose attempt it was. */
interface AttemptOwners {
  companyId: string;
  webhookId: string;
  /** The app of the webhook; null for a global one. */
  appId: string | null;
}

export type CountAttempt = (owners: AttemptOwners, counted: CountedAttempt) => void;

interface CountAttemptsDeps {
  minutes: Pick<WriteBehind<MinuteCounts>, 'sumOf'>;
  usage: Pick<WriteBehind<UsageCounts>, 'sumOf'>;
  /** Called with how many attempts are not counted, for lack of memory. */
  onLost: (count: number) => void;
}

/** Counts an attempt for its webhook, its app and its company. */
function createCountAttempts({ minutes, usage, onLost }: CountAttemptsDeps): CountAttempt {
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
    else onLost(1);
  }

  return ({ companyId, webhookId, appId }, counted) => {
    countFor('webhook', webhookId, companyId, counted);
    if (appId !== null) countFor('app', appId, companyId, counted);
    countFor('company', companyId, companyId, counted);
    const hourMs = beginningOf('hour', countedAtMs(counted));
    const sum = usage.sumOf(keyOfUsage({ companyId, hourMs }), () => noUsage(companyId, hourMs));
    if (sum) useAttempt(sum, counted);
    else onLost(1);
  };
}

function useAttempt(sum: UsageCounts, { attempt, payloadBytes }: CountedAttempt): void {
  sum.attempts += 1;
  sum.sentBytes += payloadBytes;
  if (attempt.number === 1) sum.deliveries += 1;
  if (attempt.outcome === 'success') sum.succeeded += 1;
}

export function noUsage(companyId: string, hourMs: number): UsageCounts {
  return {
    companyId,
    hourMs,
    messages: 0,
    messageBytes: 0,
    deliveries: 0,
    attempts: 0,
    succeeded: 0,
    sentBytes: 0,
  };
}

function keyOfMinute({ ownerId, minuteMs }: Pick<MinuteCounts, 'ownerId' | 'minuteMs'>): string {
  return `${ownerId}/${minuteMs / MINUTE_MS}`;
}

function keyOfUsage({ companyId, hourMs }: Pick<UsageCounts, 'companyId' | 'hourMs'>): string {
  return `${companyId}/${hourMs}`;
}

function addMinute(sum: MinuteCounts, more: MinuteCounts): void {
  addCounts(sum.counts, more.counts);
}

function addUsage(sum: UsageCounts, more: UsageCounts): void {
  sum.messages += more.messages;
  sum.messageBytes += more.messageBytes;
  sum.deliveries += more.deliveries;
  sum.attempts += more.attempts;
  sum.succeeded += more.succeeded;
  sum.sentBytes += more.sentBytes;
}

/** How many attempts or messages a sum stands for. */
function sizeOfMinute({ counts }: MinuteCounts): number {
  return attemptsIn(counts);
}

function sizeOfUsage({ attempts, messages }: UsageCounts): number {
  return attempts + messages;
}

/** An accepted message. */
export interface CountedMessage {
  companyId: string;
  /** Milliseconds since 1970. */
  createdAtMs: number;
  payloadBytes: number;
}

export type CountMessage = (message: CountedMessage) => void;

interface CountMessagesDeps {
  usage: Pick<WriteBehind<UsageCounts>, 'sumOf'>;
  /** Called with how many messages are not counted, for lack of memory. */
  onLost: (count: number) => void;
}

/** Counts a message for its company. */
function createCountMessages({ usage, onLost }: CountMessagesDeps): CountMessage {
  return ({ companyId, createdAtMs, payloadBytes }) => {
    const hourMs = beginningOf('hour', createdAtMs);
    const sum = usage.sumOf(keyOfUsage({ companyId, hourMs }), () => noUsage(companyId, hourMs));
    if (!sum) {
      onLost(1);
      return;
    }
    sum.messages += 1;
    sum.messageBytes += payloadBytes;
  };
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

/** Sums that are added to in memory and written together. */
export interface WriteBehind<Value> {
  /** Returns the sum with this key, which may be added to at once; null when there is no room for a new one. */
  sumOf: (key: string, create: () => Value) => Value | null;
  /** Writes the sums that are old enough. When it rejects they stay, and the next ticks pause. */
  tick: () => Promise<void>;
  /** Writes all sums. Returns those that are not written. */
  flush: () => Promise<readonly Value[]>;
  usedBytes: () => number;
}

interface Sum<Value> {
  value: Value;
  sinceMs: number;
}

/**
 * A sum waits this long for more: with 20 endpoints at 650 attempts/s it is written once for 160 of them. What a
 * killed process had not written is lost.
 */
const MIN_AGE_MS = 5_000;
/**
 * How many sums that are old enough are written in a round, oldest first. There is one round a second, so that
 * statistics add 100 updates a second in each process, however many endpoints there are.
 */
const PER_ROUND = 100;
/**
 * Sums of this age are written in any case, beyond that number: a company is removed two minutes after it was
 * suspended, and nothing may be counted for it after that.
 */
const MAX_AGE_MS = 45_000;
const PAUSE_AFTER_FAILURE_MS = 10_000;

/** Sums in one write: more would block the event loop for a tenth of a second. */
const MAX_PER_WRITE = 500;

interface State<Value> extends WriteBehindDeps<Value> {
  /** In the order in which they were begun. */
  sums: Map<string, Sum<Value>>;
  /** How many are being written. */
  writing: number;
  pausedUntilMs: number;
}

/** Counting costs no write: what happens to one key within seconds is one update. */
export function createWriteBehind<Value>(deps: WriteBehindDeps<Value>): WriteBehind<Value> {
  const { budgetBytes, valueBytes, monotonicMs } = deps;
  const maxSums = Math.floor(budgetBytes / valueBytes);
  const state: State<Value> = { ...deps, sums: new Map(), writing: 0, pausedUntilMs: -Infinity };
  const { sums } = state;
  return {
    sumOf(key, create) {
      const known = sums.get(key);
      if (known) return known.value;
      if (sums.size + state.writing >= maxSums) return null;
      const value = create();
      sums.set(key, { value, sinceMs: monotonicMs() });
      return value;
    },
    async tick() {
      if (monotonicMs() < state.pausedUntilMs) return;
      let due: Value[];
      do {
        due = takeDue(state);
        await writeOut(state, due);
      } while (due.length === MAX_PER_WRITE);
    },
    async flush() {
      await writeOut(state, takeAll(state)).catch(() => undefined);
      return takeAll(state);
    },
    usedBytes: () => (sums.size + state.writing) * valueBytes,
  };
}

function takeDue<Value>({ sums, monotonicMs }: State<Value>): Value[] {
  const nowMs = monotonicMs();
  const due: Value[] = [];
  for (const [key, { value, sinceMs }] of sums) {
    const ageMs = nowMs - sinceMs;
    if (ageMs < MIN_AGE_MS || due.length === MAX_PER_WRITE) break;
    if (due.length >= PER_ROUND && ageMs < MAX_AGE_MS) break;
    sums.delete(key);
    due.push(value);
  }
  return due;
}

function takeAll<Value>({ sums }: State<Value>): Value[] {
  const all = [...sums.values()].map(({ value }) => value);
  sums.clear();
  return all;
}

async function writeOut<Value>(state: State<Value>, values: readonly Value[]): Promise<void> {
  if (values.length === 0) return;
  state.writing += values.length;
  let left = values;
  try {
    left = await state.write(values);
  } catch (error) {
    state.pausedUntilMs = state.monotonicMs() + PAUSE_AFTER_FAILURE_MS;
    throw error;
  } finally {
    state.writing -= values.length;
    for (const value of left) putBack(state, value);
  }
}

function putBack<Value>({ sums, keyOf, add, monotonicMs }: State<Value>, value: Value): void {
  const key = keyOf(value);
  const sum = sums.get(key);
  if (sum) add(sum.value, value);
  else sums.set(key, { value, sinceMs: monotonicMs() });
}
