import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { createCompanyLife } from '@posthorn/platform/mongo/companies/company-life.ts';
import { createLeaseStore } from '@posthorn/platform/mongo/leases/leases.ts';
import { createResendMarks } from '@posthorn/platform/mongo/resends/resend-marks.ts';
import { createResendStore, type ResendStore } from '@posthorn/platform/mongo/resends/resends.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import type { GatewayConfig } from '../config.ts';
import type { HasApp } from '../projects/has-app.ts';
import { createPageBudget } from './resend-page-budget.ts';
import { createResendRunner } from './run-resends.ts';
import { createStartResend, type StartResend } from './start-resend.ts';

export interface Resends {
  resends: ResendStore;
  startResend: StartResend;
}

export interface OpenResendsDeps {
  db: Database;
  /** The same for what requests read. */
  requestDb: Database;
  records: RecordLog;
  retryDueTopic: string;
  webhooks: Pick<WebhookStore, 'findOne' | 'rateLimitOf'>;
  hasApp: HasApp;
  circuits: Pick<OpenCircuits, 'read'>;
  budgets: MemoryBudgets;
}

/** Opens resends, and starts to claim those that are due. */
export function openResends(
  { config, logger, lifecycle }: ServiceContext<GatewayConfig>,
  deps: OpenResendsDeps,
): Resends {
  const { db, webhooks, hasApp, budgets } = deps;
  const resends = createResendStore(deps.requestDb);
  const marks = createResendMarks(db);
  const life = createCompanyLife(db);
  const pagesBytes = memoryShare('gateway', 'resend_pages', config.MEMORY_MIB);
  const pageBudget = createPageBudget(pagesBytes);
  budgets.add('resend_pages', pagesBytes, pageBudget.usedBytes);
  const runner = createResendRunner({
    holder: randomUUID(),
    leases: createLeaseStore(db),
    resends: createResendStore(db),
    marks,
    records: deps.records,
    retryDueTopic: deps.retryDueTopic,
    rateLimitOf: webhooks.rateLimitOf,
    circuits: deps.circuits,
    isSuspended: async (companyId) => (await life.statusOf(companyId)) !== 'active',
    pageBudget,
    nowMs: systemClockMs,
    sleep: (ms, signal) => wait(ms, undefined, { signal }),
    logger,
  });
  runner.start();
  lifecycle.onStop('resends', runner.stop);
  const startResend = createStartResend({
    webhooks,
    hasApp,
    resends,
    marks,
    wake: runner.wake,
    newId: systemIds,
    nowMs: systemClockMs,
  });
  return { resends, startResend };
}
