import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import type { OpenRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { Spans } from '@posthorn/platform/tracing/spans.ts';
import type { Vault } from '@posthorn/platform/vault/vault.ts';
import { openAccept, type Accept } from '../accept/open-accept.ts';
import type { GatewayConfig } from '../config.ts';
import type { CompanyRests } from '../http/turns/company-rests.ts';
import type { GatewayRedis } from '../open-redis.ts';
import { openOutbox } from '../outbox/open-outbox.ts';
import { createHasApp, createNotStoredByApp } from '../projects/has-app.ts';
import { openRemovals } from '../removal/open-removals.ts';
import type { RemoveTree } from '../removal/remove-tree.ts';
import { openResends, type Resends } from '../resend/open-resends.ts';

export interface StepConnections {
  db: Database;
  /** The same for what requests read. */
  requestDb: Database;
  kafka: OpenRecordLog;
  redis: GatewayRedis;
  budgets: MemoryBudgets;
  spans: Spans | null;
  rests: Pick<CompanyRests, 'pauseMs'>;
}

interface StepDeps {
  vault: Vault;
  webhooks: WebhookStore;
  circuits: OpenCircuits;
}

interface Steps extends Accept, Resends {
  remove: RemoveTree;
}

/** Opens what works on messages, deliveries and removals while the gateway runs. */
export async function openSteps(
  context: ServiceContext<GatewayConfig>,
  { db, requestDb, kafka, redis, budgets, spans, rests }: StepConnections,
  { vault, webhooks, circuits }: StepDeps,
): Promise<Steps> {
  const { invalidations } = redis;
  const { records, topics } = kafka;
  const messages = createMessageStore(db);
  const hasApp = createHasApp(requestDb);
  const outbox = await openOutbox(context, {
    db,
    kafka,
    redis,
    messages,
    budgets,
    spans,
    pauseMs: rests.pauseMs,
  });
  const remove = openRemovals(context, { db, invalidate: invalidations.invalidate });
  const { resends, startResend } = openResends(context, {
    db,
    requestDb,
    records,
    retryDueTopic: topics.retryDue,
    webhooks,
    hasApp,
    circuits,
    budgets,
  });
  const acceptSteps = openAccept(context, {
    db,
    requestDb,
    vault,
    webhooks,
    notStoredByApp: createNotStoredByApp(requestDb),
    invalidations,
    outbox,
    budgets,
    spans,
  });
  return { ...acceptSteps, remove, resends, startResend };
}
