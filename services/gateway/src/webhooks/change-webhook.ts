import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { Changed } from '@posthorn/platform/mongo/company-documents.ts';
import type { WebhookChanges, WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import { notFound, unavailable } from '../http/api-error.ts';

export interface ChangeDeps {
  webhooks: Pick<WebhookStore, 'findOne' | 'update'>;
  nowMs: () => number;
  invalidate: Invalidate;
}

interface Which {
  companyId: string;
  webhookId: string;
}

type Decide = (seen: Webhook) => WebhookChanges | null;

/**
 * Reads the webhook, calls `decide`, and writes its changes; reads again when another process has changed the webhook
 * in between. Returns it before and after. `decide` returns null when nothing is to change. Throws ApiError 404 for an
 * unknown webhook, 503 when others keep changing it, and what `decide` throws.
 */
export type ChangeWebhook = (which: Which, decide: Decide) => Promise<Changed<Webhook>>;

/** Against other processes. Changes of one webhook in this process wait for each other. */
const MAX_TRIES = 10;
const doNothing = (): void => undefined;

export function createChangeWebhook(deps: ChangeDeps): ChangeWebhook {
  /** The last change of each webhook, until it has ended. */
  const lastChanges = new Map<string, Promise<void>>();
  return (which, decide) => {
    const { webhookId: id } = which;
    const before = lastChanges.get(id) ?? Promise.resolve();
    const change = before.then(() => changeNow(deps, which, decide));
    const settled = change.then(doNothing, doNothing).finally(() => {
      if (lastChanges.get(id) === settled) lastChanges.delete(id);
    });
    lastChanges.set(id, settled);
    return change;
  };
}

async function changeNow(
  { webhooks, nowMs, invalidate }: ChangeDeps,
  { companyId, webhookId }: Which,
  decide: Decide,
): Promise<Changed<Webhook>> {
  for (let tryNumber = 1; tryNumber <= MAX_TRIES; tryNumber += 1) {
    const seen = await webhooks.findOne(companyId, webhookId);
    if (!seen) throw notFound('webhook');
    const changes = decide(seen);
    if (!changes) return { before: seen, after: seen };
    // Later than the last time, even within one millisecond: the store tells versions apart by it.
    const updatedAtMs = Math.max(nowMs(), seen.updatedAtMs + 1);
    const changed = await webhooks.update(seen, { ...changes, updatedAtMs });
    if (!changed) continue;
    await invalidate({ companyId, id: webhookId });
    if (changed.appId) await invalidate({ companyId, id: changed.appId });
    return { before: seen, after: changed };
  }
  throw unavailable('changed_by_others');
}
