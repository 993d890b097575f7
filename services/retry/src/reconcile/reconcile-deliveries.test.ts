import { beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { Registry } from 'prom-client';
import {
  createMemoryReconciliation,
  type MemoryReconciliation,
} from '../../../../test/support/memory/memory-reconciliation.ts';
import { createReconciler } from './reconcile-deliveries.ts';
import { createReconcileMetrics } from './reconcile-metrics.ts';

const NOW_MS = 1_800_000_000_000;
const DAY_MS = 86_400_000;

let memory: MemoryReconciliation;
let holds: boolean[] = [];
/** What happened, in order. */
let events: string[] = [];
let onPublish: () => Promise<void>;
let registry: Registry;

beforeEach(() => {
  memory = createMemoryReconciliation(NOW_MS);
  holds = [];
  events = [];
  onPublish = () => Promise.resolve();
  registry = new Registry();
});

function createTestReconciler(hasRateLimit = false) {
  const { checks, stuck, insertAll } = memory;
  return createReconciler({
    holder: 'me',
    afterMs: DAY_MS,
    pauseMs: 0,
    logger: createLogger('test', 'silent'),
    topics: { retryDue: 'due', deliveryFailed: 'failed' },
    metrics: createReconcileMetrics(registry),
    leases: {
      hold: () => Promise.resolve(holds.shift() ?? true),
      release: (name, holder) => {
        events.push(`release ${name} of ${holder}`);
        return Promise.resolve();
      },
    },
    checks,
    webhooks: {
      statesOf: (ids) =>
        Promise.resolve(new Map(ids.map((id) => [id, { disabled: false, hasRateLimit }]))),
    },
    stuck: {
      ...stuck,
      noteDriven: (driven, atMs) => {
        events.push(`note ${driven.length}`);
        return stuck.noteDriven(driven, atMs);
      },
    },
    deliveries: {
      insertAll: (missing) => {
        events.push(`insert ${missing.length}`);
        return insertAll(missing);
      },
    },
    log: {
      publish: async (records) => {
        await onPublish();
        events.push(`publish ${records.length} to ${records[0]?.topic ?? ''}`);
      },
    },
  });
}

async function counted(found: string): Promise<number | undefined> {
  const { values = [] } =
    (await registry.getSingleMetric('posthorn_reconciled_deliveries_total')?.get()) ?? {};
  return values.find(({ labels }) => labels.found === found)?.value;
}

async function lastPassSeconds(): Promise<number | undefined> {
  const name = 'posthorn_reconcile_last_pass_timestamp_seconds';
  return (await registry.getSingleMetric(name)?.get())?.values[0]?.value;
}

const END = 'release reconciler of me';

describe('a reconciliation', () => {
  test('publishes what is overdue and notes it after, so that the next pass leaves it alone', async () => {
    memory.add({ nextAttemptAtMs: NOW_MS - DAY_MS - 1 });
    memory.add({ nextAttemptAtMs: NOW_MS - DAY_MS });
    const { tick } = createTestReconciler();
    await tick();
    await tick();
    expect(events).toEqual(['publish 1 to due', 'note 1', END, END]);
    expect(await counted('overdue_retry')).toBe(1);
  });

  test.each([
    ['waits for its turns', 2, ['note 1', END]],
    ['has waited for more than seven days', 8, ['publish 1 to due', 'note 1', END]],
  ])(
    'looks at a delivery to a webhook with a rate limit that %s',
    async (_what, days, expected) => {
      memory.add({ nextAttemptAtMs: NOW_MS - 2 * DAY_MS });
      for (const [id, delivery] of memory.deliveries) {
        memory.deliveries.set(id, { ...delivery, createdAtMs: NOW_MS - days * DAY_MS });
      }
      await createTestReconciler(true).tick();
      expect(events).toEqual(expected);
    },
  );

  test('has a schedule ended that nobody ended', async () => {
    memory.add({ nextAttemptAtMs: null });
    const { tick } = createTestReconciler();
    await tick();
    await tick();
    expect(events).toEqual(['publish 1 to failed', 'note 1', END, END]);
    expect(await counted('unended_schedule')).toBe(1);
  });

  test('records the delivery of a lost message and drives it in the same pass, once', async () => {
    memory.add();
    memory.add({ nextAttemptAtMs: NOW_MS });
    const { tick } = createTestReconciler();
    await tick();
    await tick();
    expect(events).toEqual(['insert 1', 'publish 1 to due', 'note 1', END, END]);
    expect(await counted('lost_message')).toBe(1);
  });

  test('goes through many pages and remembers where it was', async () => {
    for (let n = 0; n < 2_450; n += 1) memory.add();
    const last = memory.messages.at(-1)?.id;
    await createTestReconciler().tick();
    expect(memory.checkedTo()).toBe(last);
    expect(events.filter((event) => event.startsWith('insert'))).toEqual([
      ...['insert 1000', 'insert 1000', 'insert 450'],
    ]);
    expect(await counted('lost_message')).toBe(2_450);
    expect(await lastPassSeconds()).toBeGreaterThan(0);
  });

  test('takes few messages at once when they have thousands of targets', async () => {
    const targets = Array.from({ length: 3_000 }, (_, n) => `wh_${n}`);
    for (let n = 0; n < 3; n += 1) Object.assign(memory.add(), { targets });
    await createTestReconciler().tick();
    expect(events.filter((event) => event.startsWith('insert'))).toHaveLength(3);
    expect(await counted('lost_message')).toBe(9_000);
  });

  test('tells nothing missing that may have expired', async () => {
    const { createdAtMs } = memory.add();
    memory.keepFor(NOW_MS - createdAtMs + 3_600_000);
    await createTestReconciler().tick();
    expect(events).toEqual([END]);
    expect(memory.deliveries.size).toBe(0);
  });

  test('notes nothing that Kafka did not take, and the next one does it again', async () => {
    memory.add({ nextAttemptAtMs: 1 });
    const { tick } = createTestReconciler();
    onPublish = () => Promise.reject(new Error('Kafka is away'));
    await tick();
    expect([events, await lastPassSeconds()]).toEqual([[END], 0]);
    onPublish = () => Promise.resolve();
    await tick();
    expect(events).toEqual([END, 'publish 1 to due', 'note 1', END]);
  });

  test('does nothing while another process holds the lease, and stops when it loses it', async () => {
    for (let n = 0; n < 1_250; n += 1) memory.add();
    const { tick } = createTestReconciler();
    holds = [false];
    await tick();
    expect(events).toEqual([END]);
    holds = [true, true, false, false, false];
    await tick();
    expect(events).toEqual([END, 'insert 1000', END]);
    expect([memory.checkedTo(), await lastPassSeconds()]).toEqual([memory.messages[999]?.id, 0]);
  });

  test('ends between two pages when the process stops', async () => {
    for (let n = 0; n < 450; n += 1) memory.add({ nextAttemptAtMs: 1 });
    const { tick, stop } = createTestReconciler();
    let stopped: Promise<void> | undefined;
    onPublish = () => {
      stopped = stop();
      return Promise.resolve();
    };
    await tick();
    await stopped;
    expect(events).toEqual(['publish 200 to due', 'note 200', END]);
  });
});
