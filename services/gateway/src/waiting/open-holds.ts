import { isOnHold } from '@posthorn/domain/waiting.ts';
import type { OpenRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import {
  createWaitingDeliveries,
  type WaitingOwner,
} from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { createHoldNotes, createHoldStates } from '@posthorn/platform/mongo/webhooks/holds.ts';
import type { OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Caches } from '../caches.ts';
import type { GatewayConfig } from '../config.ts';
import type { Apps } from '../projects/apps.ts';
import type { Uids } from '../projects/uids.ts';
import type { PageBudget } from '../resend/send-resend.ts';
import { type ChangeWebhook, createChangeWebhook } from '../webhooks/webhooks.ts';
import { createHolds, type Holds } from './holds.ts';
import { createReleaseCounter, createReleaseRunner } from './run-releases.ts';

interface HoldsBasis {
  context: ServiceContext<GatewayConfig>;
  db: Database;
  kafka: OpenRecordLog;
  caches: Pick<Caches, 'invalidate' | 'onCompanyChange'>;
  circuits: OpenCircuits;
  apps: Apps;
  uids: Uids;
  webhooks: WebhookStore;
  pageBudget: PageBudget;
  nowMs: () => number;
  earlierMs: () => number;
}

/** Opens the changes of webhooks, of which holds are some, and starts to release what waits after their end. */
export function openHolds(basis: HoldsBasis): { changeWebhook: ChangeWebhook; holds: Holds } {
  const { context, db, kafka, caches, circuits, apps, pageBudget, nowMs, earlierMs } = basis;
  const { logger, lifecycle, registry } = context;
  const notes = createHoldNotes(db);
  const waiting = createWaitingDeliveries(db);
  const runner = createReleaseRunner({
    notes,
    waiting,
    holds: createHoldStates(db),
    deliveries: createDeliveryStore(db),
    circuits,
    records: kafka.records,
    retryDueTopic: kafka.topics.retryDue,
    pageBudget,
    count: createReleaseCounter(registry),
    invalidate: caches.invalidate,
    newClaim: randomUUID,
    nowMs,
    earlierMs,
    sleep: (ms, signal) => sleep(ms, undefined, { signal }),
    logger,
  });
  runner.start();
  // A company that is resumed waits for no tick.
  caches.onCompanyChange(() => void runner.tick());
  lifecycle.onStop('releases of waiting deliveries', runner.stop);
  const { retentionMs } = db.days;
  const { wake } = runner;
  const changeWebhook = createChangeWebhook({ ...basis, invalidate: caches.invalidate });
  const holds = createHolds({ notes, waiting, changeWebhook, apps, wake, retentionMs, nowMs });
  return { changeWebhook, holds };
}

/** Returns the function that reads whether dispatchers make no attempt for the webhook. */
export function isOnHoldIn(
  db: Database,
  nowMs: () => number,
): (webhook: WaitingOwner) => Promise<boolean> {
  const { holdersOf } = createHoldStates(db);
  return async (webhook) => {
    const holders = (await holdersOf([webhook])).get(webhook.webhookId);
    return holders !== undefined && isOnHold(holders, nowMs());
  };
}
