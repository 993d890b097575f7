import { randomUUID } from 'node:crypto';
import { createCompanyLife } from '@posthorn/platform/mongo/companies/company-life.ts';
import { createCompanyRemoval } from '@posthorn/platform/mongo/companies/company-removal.ts';
import { createLeaseStore } from '@posthorn/platform/mongo/leases/leases.ts';
import { createRemovalStore } from '@posthorn/platform/mongo/removals.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import type { GatewayConfig } from '../config.ts';
import type { Invalidations } from '../open-redis.ts';
import { createCompanyRemovals } from './remove-companies.ts';
import { createRemovals, type RemoveTree } from './remove-tree.ts';

interface OpenRemovalsDeps {
  db: Database;
  invalidate: Invalidations['invalidate'];
}

/** Starts to take over removals that other gateways have left unfinished, and to remove companies. */
export function openRemovals(
  { logger, lifecycle }: ServiceContext<GatewayConfig>,
  { db, invalidate }: OpenRemovalsDeps,
): RemoveTree {
  const holder = randomUUID();
  const leases = createLeaseStore(db);
  const companies = createCompanyRemovals({
    holder,
    companies: createCompanyLife(db),
    documents: createCompanyRemoval(db),
    leases,
    logger,
  });
  companies.start();
  lifecycle.onStop('removal of companies', companies.stop);
  const removals = createRemovals({
    holder,
    removals: createRemovalStore(db),
    leases,
    invalidate,
    newId: systemIds,
    nowMs: systemClockMs,
    logger,
  });
  removals.start();
  lifecycle.onStop('removals', removals.stop);
  return removals.remove;
}
