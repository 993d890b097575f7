import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { createAccountStore } from '@posthorn/platform/mongo/accounts/accounts.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { mongo } from 'mongoose';
import { createAuthentication, type Authenticate, type WrongKeys } from './authenticate.ts';
import { bytesOfMib, type GatewayConfig } from '../config.ts';
import type { Caches } from '../open-caches.ts';

interface AuthenticationDeps {
  db: mongo.Db;
  caches: Pick<Caches, 'alsoForget'>;
  wrongKeys: WrongKeys;
  budgets: MemoryBudgets;
}

/** The check of API keys, with what it remembers; a key that is revoked anywhere is forgotten here. */
export function openAuthentication(
  { config }: ServiceContext<GatewayConfig>,
  { db, caches, wrongKeys, budgets }: AuthenticationDeps,
): Authenticate {
  const { companyOfKey } = createAccountStore(db);
  const cacheBytes = bytesOfMib(config.API_KEY_CACHE_MIB);
  const { authenticate, forget, usedBytes } = createAuthentication({
    companyOfKey,
    wrongKeys,
    cacheBytes,
    nowMs: systemClockMs,
  });
  caches.alsoForget(forget);
  budgets.add('api_key_cache', cacheBytes, usedBytes);
  return authenticate;
}
