import { createLoop } from '../async/loop.ts';
import type { MemoryBudgets } from '../memory/memory-budgets.ts';
import { createStatsStore } from '../mongo/stats/stats-store.ts';
import type { MinuteCounts, UsageCounts } from '../mongo/stats/stats-documents.ts';
import { monotonicClockMs } from '../service/clock-and-ids.ts';
import type { ServiceContext } from '../service/run-service.ts';
import type { mongo } from 'mongoose';
import { Counter, type Registry } from 'prom-client';
import {
  addMinute,
  addUsage,
  createCountAttempts,
  keyOfMinute,
  keyOfUsage,
  sizeOfMinute,
  sizeOfUsage,
  type CountAttempt,
} from './count-attempts.ts';
import { createCountMessages, type CountMessage } from './count-messages.ts';
import { createWriteBehind, type WriteBehind } from './write-behind.ts';

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
