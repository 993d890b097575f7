import { beforeEach, expect, test } from '@jest/globals';
import type {
  CancellationStore,
  CancelledPage,
} from '@posthorn/platform/mongo/webhooks/cancellations.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { Registry } from 'prom-client';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../../test/support/memory/memory-leases.ts';
import { createRetryMetrics } from '../metrics.ts';
import { createSettleCancellations, LATE_AFTER_MS } from './settle-cancellations.ts';

/** The pages of a webhook that are left, by what they are of. */
interface Left {
  cancelBeforeMs: number;
  recorded: CancelledPage[];
  unrecorded: CancelledPage[];
}

let leases: MemoryLeases;
let webhooks: Map<string, Left>;
/** What was done, in order. */
let steps: string[];
let nowMs: number;

const page = (cancelled: number, before: string | null = null): CancelledPage => ({
  cancelled,
  before,
});

beforeEach(() => {
  leases = createMemoryLeases();
  webhooks = new Map<string, Left>();
  [steps, nowMs] = [[], 0];
});

function next(webhookId: string, of: 'recorded' | 'unrecorded', before?: string): CancelledPage {
  steps.push(`${webhookId} ${of} ${before ?? 'newest'}`);
  return webhooks.get(webhookId)?.[of].shift() ?? page(0);
}

const store: CancellationStore = {
  listCancelling: (limit) =>
    Promise.resolve(
      [...webhooks].slice(0, limit).map(([webhookId, { cancelBeforeMs }]) => ({
        webhookId,
        companyId: 'comp_a',
        cancelBeforeMs,
      })),
    ),
  cancelRecorded: ({ webhookId }, { before }) =>
    Promise.resolve(next(webhookId, 'recorded', before)),
  cancelUnrecorded: ({ webhookId }, { before, sinceMs }) => {
    const done = next(webhookId, 'unrecorded', before);
    steps.push(`down to ${sinceMs}`);
    return Promise.resolve(done);
  },
  finish({ webhookId, cancelBeforeMs }) {
    steps.push(`${webhookId} finished`);
    if (webhooks.get(webhookId)?.cancelBeforeMs === cancelBeforeMs) webhooks.delete(webhookId);
    return Promise.resolve();
  },
};

function open(checkedToMs: (number | null)[] = [70, 50]) {
  const registry = new Registry();
  const metrics = createRetryMetrics(registry, [1_000], () => nowMs);
  const loop = createSettleCancellations({
    holder: 'retry-1',
    leases,
    cancellations: store,
    checks: { positions: () => Promise.resolve({ nowMs, checkedToMs }) },
    metrics,
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    logger: createLogger('test', 'silent'),
  });
  return { loop, registry };
}

test('cancels what is recorded, then what the sweep has not checked, and later what came late', async () => {
  webhooks.set('wh_1', {
    cancelBeforeMs: 100,
    recorded: [page(1_000, 'dlv_b'), page(7), page(2)],
    unrecorded: [page(3, 'msg_b'), page(1)],
  });
  const { loop, registry } = open();
  await loop.tick();
  expect(steps).toEqual([
    ...['wh_1 recorded newest', 'wh_1 recorded dlv_b'],
    ...['wh_1 unrecorded newest', 'down to 50', 'wh_1 unrecorded msg_b', 'down to 50'],
  ]);
  nowMs += LATE_AFTER_MS - 1;
  await loop.tick();
  expect(steps.splice(0)).toHaveLength(6);
  nowMs += 1;
  await loop.tick();
  expect(steps).toEqual(['wh_1 recorded newest', 'wh_1 finished']);
  expect(webhooks.size).toBe(0);
  expect(await registry.metrics()).toMatch(/result="cancelled"\} 1013\n/);
});

test('looks at all messages that are kept while the sweep has not checked every share', async () => {
  webhooks.set('wh_1', { cancelBeforeMs: 100, recorded: [], unrecorded: [] });
  await open([70, null]).loop.tick();
  expect(steps).toContain('down to 0');
});

test('lets webhooks take turns, page by page', async () => {
  const pages = () => [page(1, 'dlv_b'), page(1)];
  for (const id of ['wh_1', 'wh_2']) {
    webhooks.set(id, { cancelBeforeMs: 100, recorded: pages(), unrecorded: [] });
  }
  await open().loop.tick();
  expect(steps.slice(0, 4)).toEqual([
    ...['wh_1 recorded newest', 'wh_2 recorded newest'],
    ...['wh_1 recorded dlv_b', 'wh_2 recorded dlv_b'],
  ]);
});

test('begins again when a client asks for a later time', async () => {
  webhooks.set('wh_1', { cancelBeforeMs: 100, recorded: [], unrecorded: [] });
  const { loop } = open();
  await loop.tick();
  webhooks.set('wh_1', { cancelBeforeMs: 200, recorded: [], unrecorded: [] });
  nowMs += LATE_AFTER_MS;
  steps = [];
  await loop.tick();
  expect(steps).toEqual(['wh_1 recorded newest', 'wh_1 unrecorded newest', 'down to 50']);
});

test('does nothing while another process has the lease', async () => {
  await leases.hold('settle-cancellations', 'retry-2');
  webhooks.set('wh_1', { cancelBeforeMs: 100, recorded: [], unrecorded: [] });
  await open().loop.tick();
  expect(steps).toEqual([]);
});
