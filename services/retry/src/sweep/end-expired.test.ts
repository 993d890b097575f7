import { beforeEach, expect, test } from '@jest/globals';
import type { Cancellation } from '@posthorn/domain/delivery/delivery.ts';
import type { WaitingDelivery } from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import type { WebhookHolders } from '@posthorn/platform/mongo/webhooks/holds.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { Registry } from 'prom-client';
import { createMemoryLeases } from '../../../../test/support/memory/memory-leases.ts';
import { createRetryMetrics } from '../metrics.ts';
import { createEndExpired } from './end-expired.ts';

const NOW_MS = 1_000_000;
const CREATED_MS = 500_000;
const webhook: NonNullable<WebhookHolders['webhook']> = {
  companyId: 'comp_a',
  appId: 'app_1',
  disabled: false,
  cancelBeforeMs: null,
  rateLimitPerSecond: null,
  held: { sinceMs: 1, untilMs: null, reason: null, by: 'key_1' },
};
const HELD: WebhookHolders = { webhook, appHeld: null, isSuspended: false };

let expiring: WaitingDelivery[];
let holders: Map<string, WebhookHolders>;
let cancelled: Cancellation[];
let looked: string[];
/** Since they were read. */
let endedElsewhere: Set<string>;

beforeEach(() => {
  endedElsewhere = new Set();
  holders = new Map();
  [expiring, cancelled, looked] = [[], [], []];
});

function add(n: number, webhookId: string, expiresAtMs: number, of: WebhookHolders = HELD): void {
  holders.set(webhookId, of);
  const ref = { messageId: `msg_${n}`, webhookId, companyId: 'comp_a', appId: null };
  const waits = { attemptCount: 0, waitingSinceMs: 1, dueAtMs: 1, isWaiting: true };
  expiring.push({ id: `dlv_${n}`, ...ref, ...waits, createdAtMs: CREATED_MS, expiresAtMs });
}

function open(leases = createMemoryLeases()) {
  const registry = new Registry();
  const logged: object[] = [];
  const logger = createLogger('test', 'silent');
  const loop = createEndExpired({
    holder: 'me',
    leases,
    waiting: {
      expiredAt(atMs, limit) {
        const due = expiring.filter(({ expiresAtMs = Infinity }) => expiresAtMs <= atMs);
        return Promise.resolve(due.slice(0, limit));
      },
    },
    holds: {
      holdersOf(places) {
        looked.push(...places.map(({ webhookId }) => webhookId));
        return Promise.resolve(holders);
      },
    },
    deliveries: {
      cancelPending(some) {
        const ended = some.filter(({ id }) => !endedElsewhere.has(id));
        cancelled.push(...ended);
        expiring = expiring.filter(({ id }) => !some.some((each) => each.id === id));
        return Promise.resolve({ matched: ended.length });
      },
    },
    sequences: { makeDue: () => Promise.resolve() },
    metrics: createRetryMetrics(registry, [1_000], () => NOW_MS),
    nowMs: () => NOW_MS,
    earlierMs: () => NOW_MS - 10,
    logger: Object.assign(logger, { info: (fields: object) => void logged.push(fields) }),
  });
  return { loop, registry, logged };
}

test('ends what has expired by a time that is certain, and nothing before its time', async () => {
  add(1, 'wh_1', NOW_MS - 10);
  add(2, 'wh_1', NOW_MS - 9);
  const { loop, registry } = open();
  await loop.tick();
  expect(cancelled).toEqual([{ id: 'dlv_1', reason: 'expired', atMs: NOW_MS }]);
  expect(await registry.metrics()).toMatch(/result="cancelled"\} 1\n/);
});

test('counts and logs no delivery that another process has ended meanwhile', async () => {
  add(1, 'wh_1', 1);
  add(2, 'wh_1', 1);
  endedElsewhere.add('dlv_1');
  const { loop, registry, logged } = open();
  await loop.tick();
  expect(await registry.metrics()).toMatch(/result="cancelled"\} 1\n/);
  add(3, 'wh_1', 1);
  endedElsewhere.add('dlv_3');
  await loop.tick();
  expect(logged).toEqual([{ deliveries: 1 }]);
});

test('ends everything that has expired, in pages, and looks each webhook up once for a page', async () => {
  for (let n = 0; n < 450; n += 1) add(n, `wh_${n % 2}`, NOW_MS - 10);
  await open().loop.tick();
  expect([cancelled.length, expiring]).toEqual([450, []]);
  expect(looked).toEqual(['wh_0', 'wh_1', 'wh_0', 'wh_1', 'wh_0', 'wh_1']);
});

test('gives each the reason that it would get at its release', async () => {
  const of = (changes: Partial<typeof webhook>): WebhookHolders => ({
    ...HELD,
    webhook: { ...webhook, ...changes },
  });
  add(1, 'wh_held', 1);
  add(2, 'wh_suspended', 1, { ...of({}), isSuspended: true });
  add(3, 'wh_cancelled', 1, of({ cancelBeforeMs: CREATED_MS + 1 }));
  add(4, 'wh_cancelled_before', 1, of({ cancelBeforeMs: CREATED_MS }));
  add(5, 'wh_disabled', 1, of({ disabled: true }));
  add(6, 'wh_deleted', 1, { ...HELD, webhook: null });
  await open().loop.tick();
  expect(cancelled.map(({ reason }) => reason)).toEqual([
    ...['expired', 'expired', 'cancelled_by_client', 'expired'],
    ...['webhook_disabled', 'webhook_deleted'],
  ]);
});

test('does nothing while another process has the lease', async () => {
  add(1, 'wh_1', 1);
  const leases = createMemoryLeases();
  await leases.hold('expired-deliveries', 'another');
  await open(leases).loop.tick();
  expect(cancelled).toEqual([]);
});
