import {
  failingSinceMs,
  type FailingStep,
  hourOfAttempts,
  lookFromMs,
  nextFailingStep,
  type OperatorIncident,
} from '@posthorn/domain/operator-events.ts';
import type { TopicNames } from '@posthorn/domain/records/topics.ts';
import { beginningOf, HOUR_MS, MINUTE_MS } from '@posthorn/domain/stats.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import { createLoop, type Loop, stopSoon } from '@posthorn/platform/async/loop.ts';
import {
  type AuditLog,
  createAuditLog,
  createAuditMetrics,
  createAuditStore,
} from '@posthorn/platform/mongo/companies/audit-log.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { createLeaseStore, type LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import {
  createStatsQueries,
  type StatsQueries,
} from '@posthorn/platform/mongo/messages/stats-queries.ts';
import {
  createFailingWebhooks,
  type FailingWebhook,
  type FailingWebhooks,
} from '@posthorn/platform/mongo/webhooks/failing-webhooks.ts';
import { eventRecord } from '@posthorn/platform/records/operator-incidents.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { randomUUID } from 'node:crypto';
import type { RetryConfig } from './config.ts';

export interface FailingWatchDeps {
  /** Names this process as the holder of the lease. */
  holder: string;
  /** AUTO_DISABLE_AFTER; null for never. */
  autoDisableAfterMs: number | null;
  leases: LeaseStore;
  stats: Pick<StatsQueries, 'readFailingIn' | 'hasSuccessIn' | 'readSteps'>;
  webhooks: FailingWebhooks;
  audit: Pick<AuditLog, 'recordChange'>;
  /** Resolves when Kafka has the event. */
  tell: (incident: OperatorIncident) => Promise<void>;
  keepTrying: KeepTrying;
  logger: Pick<Logger, 'warn'>;
  nowMs: () => number;
}

const LEASE = 'failing-endpoints';
const EVERY_MS = MINUTE_MS;
/** Dispatchers write what they counted within 45 s, and later only when MongoDB was away. */
const COUNTED_AFTER_MS = 10 * MINUTE_MS;
/** The lease lasts 15 s; to look at an endpoint takes a few queries. */
const ENDPOINTS_PER_LEASE = 50;

interface Round {
  doOthersSucceed: boolean;
  /** The end of the hour, in milliseconds since 1970. */
  toMs: number;
}

/**
 * Tells the operator of endpoints that have failed for a day, and disables their webhooks when a setting says so. Looks
 * at each hour when it is over, at the endpoints that had no success in it. Every process does so, one at a time; what
 * was told is stored with the webhook. Statistics only say where to look: what follows needs deliveries that confirm them.
 */
export function createFailingWatch(deps: FailingWatchDeps): Loop {
  const closing = new AbortController();
  let lookedToMs = 0;
  const loop = createLoop({
    name: 'failing endpoints',
    everyMs: EVERY_MS,
    async run() {
      const toMs = beginningOf('hour', deps.nowMs() - COUNTED_AFTER_MS);
      if (toMs > lookedToMs && (await lookUnderLease(deps, toMs, closing.signal)))
        lookedToMs = toMs;
    },
    logger: deps.logger,
  });
  return {
    start() {
      loop.start();
      void loop.tick();
    },
    tick: loop.tick,
    async stop() {
      closing.abort();
      await stopSoon(loop);
    },
  };
}

/** Returns false when another process has the lease, or when this one stops. */
async function lookUnderLease(
  deps: FailingWatchDeps,
  toMs: number,
  closing: AbortSignal,
): Promise<boolean> {
  const { leases, holder, stats } = deps;
  const keepLease = async () => !closing.aborted && (await leases.hold(LEASE, holder));
  if (!(await keepLease())) return false;
  try {
    const hourMs = toMs - HOUR_MS;
    const round = { doOthersSucceed: await stats.hasSuccessIn(hourMs), toMs };
    for (const [n, endpoint] of (await stats.readFailingIn(hourMs)).entries()) {
      if (n % ENDPOINTS_PER_LEASE === 0 && !(await keepLease())) return false;
      await lookAt(deps, endpoint, round);
    }
    return true;
  } finally {
    await leases.release(LEASE, holder).catch(() => undefined);
  }
}

async function lookAt(
  deps: FailingWatchDeps,
  { companyId, webhookId }: { companyId: string; webhookId: string },
  round: Round,
): Promise<void> {
  const { webhooks, stats, autoDisableAfterMs } = deps;
  const { toMs } = round;
  const webhook = await webhooks.findOne(companyId, webhookId);
  if (!webhook || webhook.disabled) return;
  const { told } = webhook;
  const span = { fromMs: lookFromMs(webhook, toMs), toMs };
  if (span.fromMs >= toMs) return;
  const points = await stats.readSteps({ companyId, ownerId: webhookId }, 'hour', span);
  const hours = points.map(({ atMs, counts }) => hourOfAttempts(atMs, counts));
  const sinceMs = failingSinceMs(hours, { told, toMs });
  if (sinceMs === null) return;
  const step = nextFailingStep(sinceMs, told, { ...round, autoDisableAfterMs });
  if (step.kind === 'nothing' || !(await webhooks.hasOnlyFailed(webhook, sinceMs))) return;
  await apply(deps, webhook, sinceMs, step);
}

async function apply(
  deps: FailingWatchDeps,
  webhook: FailingWebhook,
  sinceMs: number,
  step: FailingStep,
): Promise<void> {
  const { webhooks, tell, logger } = deps;
  const since = `no attempt succeeded since ${new Date(sinceMs).toISOString()}`;
  const ids = { companyId: webhook.companyId, webhookId: webhook.id };
  logger.warn({ ...ids, step: step.kind, sinceMs }, 'endpoint fails for long');
  switch (step.kind) {
    case 'nothing':
      return;
    case 'tell':
      // Reported before it is stored: a crash in between repeats the event.
      await tell({ type: 'endpoint.failing', ...ids, detail: since });
      return webhooks.markTold(webhook, { sinceMs, disableAtMs: null });
    case 'warn': {
      const { disableAtMs } = step;
      const detail = `${since}; its webhook is disabled at ${new Date(disableAtMs).toISOString()} unless one does`;
      await tell({ type: 'endpoint.to_be_disabled', ...ids, detail });
      return webhooks.markTold(webhook, { sinceMs, disableAtMs });
    }
    case 'disable':
      return disable(deps, webhook, since);
  }
}

/** As the API does it: dispatchers notice within two seconds, and what is pending is cancelled when it is due. */
async function disable(
  { webhooks, audit, tell, keepTrying, logger, nowMs }: FailingWatchDeps,
  webhook: FailingWebhook,
  detail: string,
): Promise<void> {
  const { companyId, id: webhookId } = webhook;
  const isDisabled = await audit.recordChange(
    {
      companyId,
      action: 'webhook.updated',
      actor: { kind: 'system' },
      target: { kind: 'webhook', id: webhookId },
      clientAddress: null,
      requestId: null,
      changes: [{ field: 'disabled', before: false, after: true }],
    },
    () => webhooks.disable(webhook, nowMs()),
    (done) => (done ? {} : { changes: [] }),
  );
  if (!isDisabled) return;
  logger.warn({ companyId, webhookId, detail }, 'webhook disabled after its endpoint failed');
  await keepTrying('tell of a disabled webhook', () =>
    tell({ type: 'endpoint.disabled', companyId, webhookId, detail }),
  );
}

interface Wires {
  db: Database;
  records: Pick<RecordLog, 'publish'>;
  topics: Pick<TopicNames, 'operatorEvents'>;
}

/** Starts to look for endpoints that fail for long. */
export function openFailingWatch(
  { config, logger, registry, lifecycle, keepTrying }: ServiceContext<RetryConfig>,
  { db, records, topics }: Wires,
): void {
  const watch = createFailingWatch({
    holder: randomUUID(),
    autoDisableAfterMs: config.AUTO_DISABLE_AFTER ?? null,
    leases: createLeaseStore(db),
    stats: createStatsQueries(db),
    webhooks: createFailingWebhooks(db),
    audit: createAuditLog({
      store: createAuditStore(db),
      refusalOf: () => null,
      observer: createAuditMetrics(registry, logger),
      newId: systemIds,
      nowMs: systemClockMs,
    }),
    async tell(incident) {
      const atMs = systemClockMs();
      const event = {
        id: systemIds('oev'),
        ...incident,
        count: 1,
        firstAtMs: atMs,
        lastAtMs: atMs,
      };
      await records.publish([eventRecord(topics.operatorEvents, event)]);
    },
    keepTrying,
    logger,
    nowMs: systemClockMs,
  });
  watch.start();
  lifecycle.onStop('watch of failing endpoints', watch.stop);
}
