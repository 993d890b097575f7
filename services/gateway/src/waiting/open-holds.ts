import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { createWaitingDeliveries } from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { createHoldNotes } from '@posthorn/platform/mongo/webhooks/holds.ts';
import type { WakeWork } from '@posthorn/platform/redis/wake-work.ts';
import type { Caches } from '../caches.ts';
import type { Apps } from '../projects/apps.ts';
import type { Uids } from '../projects/uids.ts';
import { type ChangeWebhook, createChangeWebhook } from '../webhooks/webhooks.ts';
import { createHolds, type Holds } from './holds.ts';

interface HoldsBasis {
  db: Database;
  caches: Pick<Caches, 'invalidate'>;
  apps: Apps;
  uids: Uids;
  webhooks: WebhookStore;
  wake: WakeWork;
  nowMs: () => number;
}

/** Opens the changes of webhooks, holds among them. */
export function openHolds(basis: HoldsBasis): { changeWebhook: ChangeWebhook; holds: Holds } {
  const { db, caches, apps, wake, nowMs } = basis;
  const changeWebhook = createChangeWebhook({ ...basis, invalidate: caches.invalidate });
  const holds = createHolds({
    notes: createHoldNotes(db),
    waiting: createWaitingDeliveries(db),
    changeWebhook,
    apps,
    wake: () => {
      wake('releases');
    },
    retentionMs: db.days.retentionMs,
    nowMs,
  });
  return { changeWebhook, holds };
}
