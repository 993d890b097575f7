import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { settleWaiting } from '@posthorn/domain/delivery/settlement.ts';
import { deliveryIdOf, firstIdAt } from '@posthorn/domain/ids.ts';
import { decodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { createCompanyLife } from '@posthorn/platform/mongo/companies/companies.ts';
import { createLeaseStore } from '@posthorn/platform/mongo/leases.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import { createStuckDeliveries } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import { createMessageChecks } from '@posthorn/platform/mongo/messages/message-checks.ts';
import { createSequenceStore } from '@posthorn/platform/mongo/messages/sequences.ts';
import { createWaitingDeliveries } from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import { createHoldNotes, createHoldStates } from '@posthorn/platform/mongo/webhooks/holds.ts';
import { createWebhookStates } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { once } from 'node:events';
import { Registry } from 'prom-client';
import type { ClaimedWork } from '@posthorn/platform/work/claimed-work.ts';
import { createRetryMetrics } from '../../services/retry/src/metrics.ts';
import { createStuckSweep } from '../../services/retry/src/sweep/sweep-stuck.ts';
import {
  createWaitingMetrics,
  createWaitingSweep,
} from '../../services/retry/src/sweep/sweep-waiting.ts';
import { createPageBudget } from '../../services/retry/src/work/page-budget.ts';
import { createResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import { createReleases } from '../../services/retry/src/work/release.ts';
import { openScratchDays, type ScratchDatabase } from '../support/stores/scratch-database.ts';
import { countIn } from '../support/stores/stored-documents.ts';
import { eventually } from '../support/time/eventually.ts';
import { LOGGER } from './world/silent-logger.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const COMPANY_ID = 'comp_a';
const WEBHOOKS = 20;
const DELIVERIES = 100_000;
const INSERTED_AT_ONCE = 2_000;
const STEP_MS = 300_000;
const MIB = 1_048_576;
/** The default is 24 h, which nothing would be overdue for before the end of the day. */
const RECONCILE_AFTER_MS = HOUR_MS;

/** Tomorrow at 23:00 UTC: all messages are of one day, whose collection is there also when midnight passes meanwhile. */
const suspendedAtMs = (Math.floor(Date.now() / DAY_MS) + 2) * DAY_MS - HOUR_MS;
let scratch: ScratchDatabase;
let nowMs = suspendedAtMs;
/** What was published, in order. */
const records: OutgoingRecord[] = [];
let releases: ClaimedWork;

const ACTIVE = { companyId: COMPANY_ID, appId: null, disabled: false };

beforeAll(async () => {
  scratch = await openScratchDays();
  const { db } = scratch;
  await collection(db, 'companies').insertOne({
    _id: COMPANY_ID,
    name: 'Acme',
    createdAt: new Date(suspendedAtMs - DAY_MS),
  });
  for (let n = 0; n < WEBHOOKS; n += 1) {
    await db.collection<{ _id: string }>('webhooks').insertOne({ _id: `wh_${n}`, ...ACTIVE });
  }
});

afterAll(async () => {
  await releases.stop();
  await scratch.drop();
});

/** A delivery before its first attempt, or behind some that failed. */
function waitingDelivery(n: number) {
  const createdAtMs = suspendedAtMs - HOUR_MS + Math.floor((n * HOUR_MS) / DELIVERIES);
  const webhookId = `wh_${n % WEBHOOKS}`;
  const messageId = `${firstIdAt('msg', createdAtMs)}${String(n).padStart(16, '0')}`;
  const deliveryId = deliveryIdOf(messageId, webhookId);
  const ref = { messageId, webhookId, companyId: COMPANY_ID, appId: null, createdAtMs };
  return settleWaiting(
    { ...ref, deliveryId, attemptNumber: 1 + (n % 3) },
    'hold',
    suspendedAtMs + Math.floor((n * DAY_MS) / DELIVERIES),
  );
}

/** Publishes into `records`. Nothing that it publishes has an attempt. */
const published = {
  publish(some: readonly OutgoingRecord[]) {
    records.push(...some);
    return Promise.resolve();
  },
};

function openReleases(): ClaimedWork {
  const { db } = scratch;
  return createReleases({
    notes: createHoldNotes(db),
    waiting: createWaitingDeliveries(db),
    holds: createHoldStates(db),
    deliveries: createDeliveryStore(db),
    sequences: createSequenceStore(db),
    circuits: { read: () => Promise.resolve(null) },
    records: published,
    retryDueTopic: 'retry-due',
    pageBudget: createPageBudget(64 * MIB),
    count: () => undefined,
    resends: createResendStore(db),
    freeKeys: () => Promise.resolve(),
    wakeResends: () => undefined,
    invalidate: () => Promise.resolve(),
    newClaim: () => 'claim',
    nowMs: () => nowMs,
    earlierMs: () => nowMs,
    // Between two looks at what it has released: only the first page is of interest.
    sleep: async (_ms, signal) => {
      if (!signal.aborted) await once(signal, 'abort');
      signal.throwIfAborted();
    },
    logger: LOGGER,
  });
}

function openSweeps() {
  const { db } = scratch;
  const registry = new Registry();
  const clock = () => nowMs;
  const shared = { holder: 'retry', leases: createLeaseStore(db), nowMs: clock, logger: LOGGER };
  const checks = createMessageChecks(db);
  return [
    createWaitingSweep({
      ...shared,
      earlierMs: clock,
      waiting: createWaitingDeliveries(db),
      notes: createHoldNotes(db),
      holds: createHoldStates(db),
      metrics: createWaitingMetrics(registry, clock),
    }),
    createStuckSweep({
      ...shared,
      afterMs: RECONCILE_AFTER_MS,
      topics: { retryDue: 'retry-due', deliveryFailed: 'delivery-failed' },
      checks: { ...checks, positions: async () => ({ ...(await checks.positions()), nowMs }) },
      stuck: createStuckDeliveries(db),
      deliveries: createDeliveryStore(db),
      webhooks: createWebhookStates(db),
      records: published,
      metrics: createRetryMetrics(registry, [], clock).stuck,
      monotonicMs: clock,
      pause: () => Promise.resolve(),
    }),
  ];
}

describe('A company that is suspended for a day', () => {
  it(`has ${DELIVERIES} deliveries of which no record circulates; the first is released within a second`, async () => {
    const { db } = scratch;
    const life = createCompanyLife(db, () => nowMs);
    await life.suspend(COMPANY_ID);
    const store = createDeliveryStore(db);
    const sweeps = openSweeps();
    releases = openReleases();
    let inserted = 0;
    for (; nowMs < suspendedAtMs + DAY_MS; nowMs += STEP_MS) {
      const wanted = Math.ceil((DELIVERIES * (nowMs + STEP_MS - suspendedAtMs)) / DAY_MS);
      if (wanted - inserted >= INSERTED_AT_ONCE || wanted >= DELIVERIES) {
        const from = inserted;
        inserted = Math.min(DELIVERIES, wanted);
        const some = Array.from({ length: inserted - from }, (_, n) => waitingDelivery(from + n));
        if (some.length > 0) await store.insertAll(some);
      }
      await releases.tick();
      await releases.idle();
      if (nowMs % HOUR_MS === 0) for (const each of sweeps) await each.tick();
    }
    expect(records).toEqual([]);
    const stillWaiting = { waiting: 'hold', status: 'pending' } as const;
    expect(await countIn(db.days.deliveries, stillWaiting)).toBe(DELIVERIES);

    await life.resume(COMPANY_ID);
    nowMs += SECOND_MS;
    await releases.tick();
    await eventually('the first page of each webhook', () => webhooksOf(records).size === WEBHOOKS);
    for (let n = 0; n < WEBHOOKS; n += 1) {
      const own = records.filter(({ key }) => key === `wh_${n}`);
      const released = own.map(({ value }) => decodeRetryDue(value));
      const oldest = released.map((_, place) => waitingDelivery(n + place * WEBHOOKS));
      expect(released.map(({ messageId, attemptNumber }) => [messageId, attemptNumber])).toEqual(
        oldest.map(({ messageId, wait }) => [messageId, wait?.attemptNumber]),
      );
    }
  }, 300_000);
});

const webhooksOf = (some: readonly OutgoingRecord[]): Set<string> =>
  new Set(some.map(({ key }) => key));
