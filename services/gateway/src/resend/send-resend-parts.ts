import {
  ResendMovedError,
  type Resend,
  type ResendStore,
} from '@posthorn/platform/mongo/resends/resends.ts';
import { partFor } from '@posthorn/platform/mongo/resends/resends-of-app.ts';
import { LEASE_MS } from './send-resend-page.ts';
import { sendPages, type SendPagesDeps } from './send-resend-pages.ts';

export interface SendPartsDeps extends SendPagesDeps {
  resends: SendPagesDeps['resends'] &
    Pick<ResendStore, 'insert' | 'openParts' | 'lastWebhook' | 'webhooksBehind' | 'findShown'>;
}

/** Webhooks of one app that are sent to at once: a dead or slow one must not hold the others up. */
const PARTS_AT_ONCE = 10;
const WEBHOOKS_PAGE = 100;

/**
 * Goes through a resend of an app to its end: a part for each webhook that has something to send,
 * each with pages of its own. Throws when it has to stop before, and nothing of it goes on then.
 */
export async function sendParts(
  deps: SendPartsDeps,
  resend: Resend,
  lease: string,
  signal: AbortSignal,
): Promise<void> {
  const failing = new AbortController();
  const stopping = AbortSignal.any([signal, failing.signal]);
  const parts = nextParts(deps, resend, lease);
  const work = async (): Promise<void> => {
    try {
      for await (const part of parts) await sendPages(deps, part, lease, stopping);
    } catch (error) {
      failing.abort(error);
    }
  };
  await Promise.all(Array.from({ length: PARTS_AT_ONCE }, work));
  stopping.throwIfAborted();
  const { succeeded, failed } =
    (await deps.resends.findShown(resend.companyId, resend._id)) ?? resend;
  await deps.resends.finish({ ...resend, succeeded, failed }, deps.nowMs());
}

/** First those that were begun before; then one for each webhook behind them that has failures. */
async function* nextParts(
  { resends, leases, holder, nowMs }: SendPartsDeps,
  resend: Resend,
  lease: string,
): AsyncGenerator<Resend, void, undefined> {
  let afterId = await resends.lastWebhook(resend);
  yield* await resends.openParts(resend);
  for (;;) {
    // Webhooks without failures hold no page, whose sending renews the lease.
    if (!(await leases.hold(lease, holder, LEASE_MS))) throw new ResendMovedError(lease);
    const webhookIds = await resends.webhooksBehind(resend, afterId, WEBHOOKS_PAGE);
    for (const webhookId of webhookIds) {
      const part = partFor(resend, webhookId, nowMs());
      if ((await resends.nextPage(part, 1)).length === 0) continue;
      if (!(await resends.insert(part))) throw new ResendMovedError(part._id);
      yield part;
    }
    afterId = webhookIds.at(-1) ?? '';
    if (webhookIds.length < WEBHOOKS_PAGE) return;
  }
}
