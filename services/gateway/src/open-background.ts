import { randomUUID } from 'node:crypto';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { createLeaseStore } from '@posthorn/platform/mongo/leases.ts';
import { createRemovalStore } from '@posthorn/platform/mongo/removals.ts';
import {
  createResendMarks,
  type ResendMarks,
} from '@posthorn/platform/mongo/resends/resend-marks.ts';
import { createResendStore, type ResendStore } from '@posthorn/platform/mongo/resends/resends.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Invalidation } from '@posthorn/platform/redis/invalidations.ts';
import type { OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { mongo } from 'mongoose';
import { bytesOfMib, type GatewayConfig } from './config.ts';
import { createRemovals, type RemoveTree } from './removal/remove-tree.ts';
import { createResendRoom } from './resend/resend-room.ts';
import { createResendRunner, type ResendRunner } from './resend/run-resends.ts';

export interface Background {
  remove: RemoveTree;
  resends: ResendStore;
  marks: ResendMarks;
  wake: ResendRunner['wake'];
}

interface BackgroundDeps {
  db: mongo.Db;
  log: RecordLog;
  retryDueTopic: string;
  invalidate: (invalidation: Invalidation) => Promise<void>;
  webhooks: Pick<WebhookStore, 'rateLimitOf'>;
  circuits: Pick<OpenCircuits, 'read'>;
  budgets: MemoryBudgets;
}

/** Work that goes on behind the answers: removals and resends, taken up by any gateway. */
export function openBackground(
  { config, logger, lifecycle }: ServiceContext<GatewayConfig>,
  { db, log, retryDueTopic, invalidate, webhooks, circuits, budgets }: BackgroundDeps,
): Background {
  const shared = {
    holder: randomUUID(),
    leases: createLeaseStore(db),
    logger,
    newId: systemIds,
    nowMs: systemClockMs,
  };
  const removals = createRemovals({ ...shared, removals: createRemovalStore(db), invalidate });
  const stores = { resends: createResendStore(db), marks: createResendMarks(db) };
  const { rateLimitOf } = webhooks;
  const roomBytes = bytesOfMib(config.RESEND_PAGES_MIB);
  const room = createResendRoom(roomBytes);
  budgets.add('resend_pages', roomBytes, room.usedBytes);
  const runner = createResendRunner({
    ...shared,
    ...stores,
    log,
    retryDueTopic,
    rateLimitOf,
    room,
    // Without Redis no endpoint is known to fail.
    isCircuitOpen: async (webhookId) => (await circuits.read(webhookId).catch(() => null)) !== null,
  });
  for (const [name, work] of Object.entries({ removals, resends: runner })) {
    work.start();
    lifecycle.onStop(name, work.stop);
  }
  return { remove: removals.remove, ...stores, wake: runner.wake };
}
