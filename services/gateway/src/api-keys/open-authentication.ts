import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { createCompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { mongo } from 'mongoose';
import { createAuthentication, type Authenticate } from './authenticate.ts';
import { createLastUsed } from './last-used.ts';
import type { GatewayConfig } from '../config.ts';
import type { WrongKeys } from '../limits/rate-limits.ts';
import type { Invalidations } from '../open-redis.ts';

interface AuthenticationDeps {
  db: mongo.Db;
  invalidations: Pick<Invalidations, 'addCache'>;
  wrongKeys: WrongKeys;
  budgets: MemoryBudgets;
}

/** Opens the check of API keys with its cache, from which a key is dropped when any gateway revokes it. */
export function openAuthentication(
  { config, lifecycle, logger }: ServiceContext<GatewayConfig>,
  { db, invalidations, wrongKeys, budgets }: AuthenticationDeps,
): Authenticate {
  const { findKey, noteUse } = createCompanyStore(db);
  const lastUsed = createLastUsed({ write: noteUse, nowMs: systemClockMs, logger });
  const cacheBytes = memoryShare('gateway', 'api_key_cache', config.MEMORY_MIB);
  const { authenticate, forget, usedBytes } = createAuthentication({
    findKey,
    wrongKeys,
    onUsed: lastUsed.note,
    cacheBytes,
    nowMs: systemClockMs,
  });
  // The id of an invalidated key is its hash.
  invalidations.addCache({
    forget: ({ id }) => {
      forget(id);
    },
  });
  budgets.add('api_key_cache', cacheBytes, usedBytes);
  lastUsed.start();
  lifecycle.onStop('last use of keys', lastUsed.stop);
  return authenticate;
}
