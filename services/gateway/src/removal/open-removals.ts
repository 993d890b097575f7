import { randomUUID } from 'node:crypto';
import { createLeaseStore } from '@posthorn/platform/mongo/leases.ts';
import { createRemovalStore } from '@posthorn/platform/mongo/removals.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { mongo } from 'mongoose';
import type { GatewayConfig } from '../config.ts';
import type { Invalidations } from '../open-redis.ts';
import { createRemovals, type RemoveTree } from './remove-tree.ts';

interface OpenRemovalsDeps {
  db: mongo.Db;
  invalidate: Invalidations['invalidate'];
}

/** Starts to take over removals that other gateways have left unfinished. */
export function openRemovals(
  { logger, lifecycle }: ServiceContext<GatewayConfig>,
  { db, invalidate }: OpenRemovalsDeps,
): RemoveTree {
  const removals = createRemovals({
    holder: randomUUID(),
    removals: createRemovalStore(db),
    leases: createLeaseStore(db),
    invalidate,
    newId: systemIds,
    nowMs: systemClockMs,
    logger,
  });
  removals.start();
  lifecycle.onStop('removals', removals.stop);
  return removals.remove;
}
