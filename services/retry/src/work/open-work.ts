import { orderingNow } from '@posthorn/domain/delivery/sequence.ts';
import { isOnHold } from '@posthorn/domain/waiting.ts';
import { withTimeout } from '@posthorn/platform/async/pause.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import { createCompanyLife } from '@posthorn/platform/mongo/companies/companies.ts';
import {
  createCompanyRemoval,
  createRemovalStore,
} from '@posthorn/platform/mongo/companies/removals.ts';
import type { DatabaseTime } from '@posthorn/platform/mongo/database-time.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import type { LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import { createFilterCancellations } from '@posthorn/platform/mongo/messages/filter-cancellations.ts';
import { createMessageChecks } from '@posthorn/platform/mongo/messages/message-checks.ts';
import { createReplayStore } from '@posthorn/platform/mongo/messages/replays.ts';
import { createSelectedDeliveries } from '@posthorn/platform/mongo/messages/selected-deliveries.ts';
import type {
  WaitingDeliveries,
  WaitingOwner,
} from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import { createHoldNotes, createHoldStates } from '@posthorn/platform/mongo/webhooks/holds.ts';
import { createResendMarks } from '@posthorn/platform/mongo/webhooks/resend-marks.ts';
import { createResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import type { SequenceStore } from '@posthorn/platform/mongo/messages/sequences.ts';
import type { WebhookStates } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { announce } from '@posthorn/platform/redis/invalidations.ts';
import { createOpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import type { OpenRedis } from '@posthorn/platform/redis/open-redis.ts';
import { announceWork, listenForWork, type WorkKind } from '@posthorn/platform/redis/wake-work.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { ClaimedWork } from '@posthorn/platform/work/claimed-work.ts';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RetryConfig } from '../config.ts';
import { createCancelSelected } from './cancel-selected.ts';
import type { RetryMetrics } from '../metrics.ts';
import { createCompanyRemovals } from './company-removal.ts';
import { createPageBudget, type PageBudget } from './page-budget.ts';
import { createReleaseCounter, createReleases } from './release.ts';
import { createRemovals } from './removal.ts';
import { createResends } from './resend.ts';

interface WorkBasis extends ServiceContext<RetryConfig> {
  db: Database;
  databaseTime: DatabaseTime;
  redis: OpenRedis;
  records: RecordLog;
  topics: { retryDue: string };
  deliveries: DeliveryStore;
  /** The one of the release at the time of messages, which remembers days. */
  waiting: WaitingDeliveries;
  webhooks: WebhookStates;
  sequences: SequenceStore;
  metrics: Pick<RetryMetrics, 'finished'>;
  budgets: MemoryBudgets;
  /** Names this process as the holder of leases. */
  holder: string;
  leases: LeaseStore;
}

/**
 * Opens the work that clients have asked for and that takes longer than a request: resends, replays, cancellations, releases
 * and removals.
 * The gateway has written a note of it.
 */
export function openWork(basis: WorkBasis): void {
  const { config, lifecycle, redis, waiting } = basis;
  const shared = sharedBy(basis);
  const resends = openResends(basis, shared);
  const work = new Map<string, ClaimedWork>([
    [
      'releases',
      openReleases(basis, shared, () => {
        resends.wake();
      }),
    ],
    ['removals', createRemovals({ ...shared, removals: createRemovalStore(basis.db) })],
    ['resends', resends],
    ['cancellations', openCancellations(basis, shared)],
  ] satisfies [WorkKind, ClaimedWork][]);
  for (const each of work.values()) each.start();
  lifecycle.onStop('work of clients', async () => {
    await Promise.all(Array.from(work.values(), (each) => each.stop()));
  });
  listenForWork(redis.subscriber, config.REDIS_PREFIX, (kind) => {
    if (kind === 'timed') waiting.lookAtAllDays();
    else work.get(kind)?.wake();
  });
  const companies = createCompanyRemovals({
    ...basis,
    companies: createCompanyLife(basis.db, basis.databaseTime.nowMs),
    documents: createCompanyRemoval(basis.db),
  });
  companies.start();
  lifecycle.onStop('removal of companies', companies.stop);
}

const PUBLISH_WITHIN_MS = 10_000;

/** What all kinds of work use. */
function sharedBy(basis: WorkBasis) {
  const { config, logger, redis, db, budgets, databaseTime, topics, records } = basis;
  const pagesBytes = memoryShare('retry', 'resend_pages', config.MEMORY_MIB);
  const pageBudget: PageBudget = createPageBudget(pagesBytes);
  budgets.add('resend_pages', pagesBytes, pageBudget.usedBytes);
  return {
    ...basis,
    ...databaseTime,
    // Another process may reach a Kafka that does not answer this one. What arrives late is attempted once.
    records: {
      publish: (outgoing: Parameters<RecordLog['publish']>[0]) =>
        withTimeout(records.publish(outgoing), PUBLISH_WITHIN_MS),
    },
    retryDueTopic: topics.retryDue,
    circuits: createOpenCircuits(redis.client, config.REDIS_PREFIX, databaseTime.nowMs),
    pageBudget,
    invalidate: (...changed: Parameters<typeof announce>[2]) =>
      announce(redis.client, config.REDIS_PREFIX, changed),
    newClaim: randomUUID,
    sleep: (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal }),
    holds: createHoldStates(db),
    logger,
  };
}

type Shared = ReturnType<typeof sharedBy>;

function openReleases(
  { db, registry, waiting, webhooks, sequences }: WorkBasis,
  shared: Shared,
  wakeResends: () => void,
): ClaimedWork {
  return createReleases({
    ...shared,
    notes: createHoldNotes(db),
    resends: createResendStore(db),
    wakeResends,
    waiting,
    async freeKeys({ companyId, webhookId }) {
      const states = await webhooks.statesOf([webhookId]);
      if (orderingNow(states.get(webhookId)) === 'block') return;
      await sequences.makeAllDue({ companyId, webhookId }, 'blocked', shared.nowMs());
    },
    count: createReleaseCounter(registry),
  });
}

function openResends(basis: WorkBasis, shared: Shared): ClaimedWork {
  const { config, db, redis, waiting, webhooks } = basis;
  const { holds, nowMs } = shared;
  return createResends({
    ...shared,
    resends: createResendStore(db),
    replays: createReplayStore(db),
    marks: createResendMarks(db),
    announceTimed() {
      // This process may be the one that releases them, and Redis may be away.
      waiting.lookAtAllDays();
      void announceWork(redis.client, config.REDIS_PREFIX, 'timed');
    },
    targetOf: (companyId, webhookId) => webhooks.targetOf(companyId, webhookId),
    async isOnHold(webhook: WaitingOwner) {
      const holders = (await holds.holdersOf([webhook])).get(webhook.webhookId);
      return holders !== undefined && isOnHold(holders, nowMs());
    },
  });
}

function openCancellations({ db }: WorkBasis, shared: Shared): ClaimedWork {
  return createCancelSelected({
    ...shared,
    cancellations: createFilterCancellations(db),
    selected: createSelectedDeliveries(db),
    checks: createMessageChecks(db),
  });
}
