import { beforeEach, expect, test } from '@jest/globals';
import type {
  CancellationStore,
  CancelledPage,
  CancellingWebhook,
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
  /** `comp_a` unless given. */
  companyId?: string;
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

const cancelling = (): CancellingWebhook[] =>
  [...webhooks].map(([webhookId, { cancelBeforeMs, companyId = 'comp_a' }]) => ({
    webhookId,
    companyId,
    cancelBeforeMs,
  }));

const store: CancellationStore = {
  nextCancelling({ afterCompanyId, exceptIds, limit }) {
    const all = cancelling().filter(({ webhookId }) => !exceptIds.includes(webhookId));
    const companyIds = all.map(({ companyId }) => companyId).filter((id) => id > afterCompanyId);
    const [next] = companyIds.sort();
    return Promise.resolve(all.filter(({ companyId }) => companyId === next).slice(0, limit));
  },
  read: (ids) => Promise.resolve(cancelling().filter(({ webhookId }) => ids.includes(webhookId))),
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
    sequences: { makeAllDue: () => Promise.resolve() },
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

test('is not kept from the webhook of a company by many of another one, asked again and again', async () => {
  const ask = (): void => {
    for (let n = 0; n < 30; n += 1) {
      webhooks.set(`wh_${n}`, { cancelBeforeMs: nowMs, recorded: [], unrecorded: [] });
    }
  };
  ask();
  webhooks.set('wh_z', { companyId: 'comp_z', cancelBeforeMs: 1, recorded: [], unrecorded: [] });
  const { loop } = open();
  await loop.tick();
  expect(steps.indexOf('wh_z recorded newest')).toBe(1);
  // All 30 of the other company had their turn, too.
  expect(steps).toContain('wh_29 unrecorded newest');
  for (let n = 0; n < 2; n += 1) {
    nowMs += 8_000;
    ask();
    await loop.tick();
  }
  expect(steps).toContain('wh_z finished');
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
