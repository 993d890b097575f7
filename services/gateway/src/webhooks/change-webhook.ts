import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { WebhookChanges, WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Invalidation } from '@posthorn/platform/redis/invalidations.ts';
import { notFound, unavailable } from '../http/api-error.ts';

export interface ChangeDeps {
  webhooks: Pick<WebhookStore, 'findOne' | 'update'>;
  nowMs: () => number;
  /** Tells every process, this one first, to forget what it remembers of a webhook or app. */
  invalidate: (invalidation: Invalidation) => Promise<void>;
}

interface Which {
  companyId: string;
  webhookId: string;
}

type Decide = (seen: Webhook) => WebhookChanges | null;

/**
 * Reads, decides and writes, again when somebody else was faster. `decide` answers null when
 * nothing is to change. Throws ApiError 404 for an unknown webhook, 503 when others keep changing it.
 */
export type ChangeWebhook = (which: Which, decide: Decide) => Promise<Webhook>;

/** Against other processes; changes in this one stand in line. */
const MAX_TRIES = 10;
const doNothing = (): void => undefined;

export function createChangeWebhook(deps: ChangeDeps): ChangeWebhook {
  const underWay = new Map<string, Promise<void>>();
  return (which, decide) => {
    const { webhookId: id } = which;
    const before = underWay.get(id) ?? Promise.resolve();
    const change = before.then(() => changeNow(deps, which, decide));
    const over = change.then(doNothing, doNothing).finally(() => {
      if (underWay.get(id) === over) underWay.delete(id);
    });
    underWay.set(id, over);
    return change;
  };
}

async function changeNow(
  { webhooks, nowMs, invalidate }: ChangeDeps,
  { companyId, webhookId }: Which,
  decide: Decide,
): Promise<Webhook> {
  for (let tryNumber = 1; tryNumber <= MAX_TRIES; tryNumber += 1) {
    const seen = await webhooks.findOne(companyId, webhookId);
    if (!seen) throw notFound('webhook');
    const changes = decide(seen);
    if (!changes) return seen;
    // Always later than before, also within one millisecond: the store tells versions apart by it.
    const updatedAtMs = Math.max(nowMs(), seen.updatedAtMs + 1);
    const changed = await webhooks.update(seen, { ...changes, updatedAtMs });
    if (!changed) continue;
    await invalidate({ companyId, id: webhookId });
    if (changed.appId) await invalidate({ companyId, id: changed.appId });
    return changed;
  }
  throw unavailable();
}
