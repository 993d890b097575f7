import {
  failingSinceMs,
  type FailingStep,
  hourOfAttempts,
  lookFromMs,
  nextFailingStep,
  type OperatorIncident,
} from '@posthorn/domain/operator-events.ts';
import { beginningOf, HOUR_MS, MINUTE_MS } from '@posthorn/domain/stats.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { Loop } from '@posthorn/platform/async/loop.ts';
import type { StatsQueries } from '@posthorn/platform/mongo/messages/stats-queries.ts';
import type { DisableWebhook } from './disable-webhook.ts';
import type {
  FailingWebhook,
  FailingWebhooks,
} from '@posthorn/platform/mongo/webhooks/failing-webhooks.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { createLeasedLoop, type LeaseHolder } from '@posthorn/platform/work/leased-loop.ts';

export interface FailingWatchDeps extends LeaseHolder {
  /** AUTO_DISABLE_AFTER; null for never. */
  autoDisableAfterMs: number | null;
  stats: Pick<StatsQueries, 'isAddedUpTo' | 'readFailingIn' | 'hasSuccessIn' | 'readSteps'>;
  webhooks: FailingWebhooks;
  disableWebhook: DisableWebhook;
  /** Publishes an event for the operator. Resolves when Kafka has it. */
  publish: (incident: OperatorIncident) => Promise<void>;
  keepTrying: KeepTrying;
  logger: Pick<Logger, 'warn'>;
  nowMs: () => number;
}

const LEASE = 'failing-endpoints';
const EVERY_MS = MINUTE_MS;
/** Dispatchers write what they counted within a minute, and later only when MongoDB was away. */
const COUNTED_AFTER_MS = 10 * MINUTE_MS;
/** The lease lasts 15 s; an endpoint takes a few queries. */
const ENDPOINTS_PER_LEASE = 50;

/**
 * Reports endpoints that have failed for a day to the operator, and disables their webhooks when a setting says so. When an
 * hour is over, it checks the endpoints that had no success in it. One process at a time does; what was reported is stored
 * with the webhook. Statistics only say where to look: what follows needs deliveries that confirm them.
 */
export function createFailingWatch(deps: FailingWatchDeps): Loop {
  const { nowMs } = deps;
  let checkedToMs = 0;
  return createLeasedLoop({
    ...deps,
    name: 'failing endpoints',
    lease: LEASE,
    everyMs: EVERY_MS,
    startsAtOnce: true,
    async run(keep) {
      const toMs = beginningOf('hour', nowMs() - COUNTED_AFTER_MS);
      if (toMs <= checkedToMs || !(await deps.stats.isAddedUpTo(toMs)) || !(await keep())) return;
      if (await checkHour(deps, toMs, keep)) checkedToMs = toMs;
    },
  });
}

interface CheckedHour {
  doOthersSucceed: boolean;
  /** The end of the hour, in milliseconds since 1970. */
  toMs: number;
}

/** Returns false when another process has the lease, or when this one stops. */
async function checkHour(
  deps: FailingWatchDeps,
  toMs: number,
  keepLease: () => Promise<boolean>,
): Promise<boolean> {
  const { stats } = deps;
  const hourMs = toMs - HOUR_MS;
  const hour = { doOthersSucceed: await stats.hasSuccessIn(hourMs), toMs };
  for (const [n, endpoint] of (await stats.readFailingIn(hourMs)).entries()) {
    if (n % ENDPOINTS_PER_LEASE === 0 && !(await keepLease())) return false;
    await checkEndpoint(deps, endpoint, hour);
  }
  return true;
}

async function checkEndpoint(
  deps: FailingWatchDeps,
  { companyId, webhookId }: { companyId: string; webhookId: string },
  hour: CheckedHour,
): Promise<void> {
  const { webhooks, stats, autoDisableAfterMs } = deps;
  const { toMs } = hour;
  const webhook = await webhooks.findOne(companyId, webhookId);
  if (!webhook || webhook.disabled) return;
  const { told } = webhook;
  const span = { fromMs: lookFromMs(webhook, toMs), toMs };
  if (span.fromMs >= toMs) return;
  const points = await stats.readSteps({ companyId, ownerId: webhookId }, 'hour', span);
  const hours = points.map(({ atMs, counts }) => hourOfAttempts(atMs, counts));
  const sinceMs = failingSinceMs(hours, { told, toMs });
  if (sinceMs === null) return;
  const step = nextFailingStep(sinceMs, told, { ...hour, autoDisableAfterMs });
  if (step.kind === 'nothing' || !(await webhooks.hasOnlyFailed(webhook, sinceMs))) return;
  await apply(deps, webhook, sinceMs, step);
}

async function apply(
  deps: FailingWatchDeps,
  webhook: FailingWebhook,
  sinceMs: number,
  step: FailingStep,
): Promise<void> {
  const { webhooks, publish, logger } = deps;
  const since = `no attempt succeeded since ${new Date(sinceMs).toISOString()}`;
  const ids = { companyId: webhook.companyId, webhookId: webhook.id };
  logger.warn({ ...ids, step: step.kind, sinceMs }, 'endpoint has been failing for a day');
  switch (step.kind) {
    case 'nothing':
      return;
    case 'tell':
      // Reported before it is stored: a crash in between repeats the event.
      await publish({ type: 'endpoint.failing', ...ids, detail: since });
      return webhooks.markTold(webhook, { sinceMs, disableAtMs: null });
    case 'warn': {
      const { disableAtMs } = step;
      const detail = `${since}; its webhook is disabled at ${new Date(disableAtMs).toISOString()} unless one does`;
      await publish({ type: 'endpoint.to_be_disabled', ...ids, detail });
      return webhooks.markTold(webhook, { sinceMs, disableAtMs });
    }
    case 'disable':
      return disableFailing(deps, webhook, since);
  }
}

async function disableFailing(
  { disableWebhook, publish, keepTrying, logger }: FailingWatchDeps,
  webhook: FailingWebhook,
  detail: string,
): Promise<void> {
  const { companyId, id: webhookId } = webhook;
  if (!(await disableWebhook(webhook, 'failing'))) return;
  logger.warn({ companyId, webhookId, detail }, 'webhook disabled after its endpoint failed');
  await keepTrying('publish event endpoint.disabled', () =>
    publish({ type: 'endpoint.disabled', companyId, webhookId, detail }),
  );
}
