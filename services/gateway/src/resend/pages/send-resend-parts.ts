import { ResendMovedError, type ResendStore } from '@posthorn/platform/mongo/resends/resends.ts';
import type { Resend } from '@posthorn/domain/resend.ts';
import { partFor } from '@posthorn/domain/resend.ts';
import { whenAbortAsked } from '../abort-resend.ts';
import { sendPages, type SendPagesDeps } from './send-resend-pages.ts';

export interface SendPartsDeps extends SendPagesDeps {
  resends: SendPagesDeps['resends'] &
    Pick<ResendStore, 'insert' | 'openParts' | 'lastWebhook' | 'webhooksAfter' | 'findShown'>;
}

/** Webhooks of one app that are sent to at once: a dead or slow one must not delay the others. */
const PARTS_AT_ONCE = 10;
const WEBHOOKS_PAGE = 100;

/**
 * Sends a resend of an app: one part for each webhook that has failed deliveries, each with pages of
 * its own. Throws when it has to stop before the end; all parts have stopped then.
 */
export async function sendParts(
  deps: SendPartsDeps,
  resend: Resend,
  lease: string,
  signal: AbortSignal,
): Promise<void> {
  const failing = new AbortController();
  const stopping = AbortSignal.any([signal, failing.signal]);
  const parts = startParts(deps, resend, lease);
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
    (await deps.resends.findShown(resend.companyId, resend.id)) ?? resend;
  const isAborted = (await whenAbortAsked(deps, resend)) !== null;
  const status = isAborted ? 'aborted' : 'done';
  await deps.resends.finish({ ...resend, succeeded, failed }, deps.nowMs(), status);
}

/** Yields the parts that were started before, then starts one for each further webhook that has failures. */
async function* startParts(
  deps: SendPartsDeps,
  resend: Resend,
  lease: string,
): AsyncGenerator<Resend, void, undefined> {
  const { resends, leases, holder, nowMs } = deps;
  let afterId = await resends.lastWebhook(resend);
  yield* await resends.openParts(resend);
  for (;;) {
    // Webhooks without failures have no page, and only pages renew the lease.
    if (!(await leases.hold(lease, holder))) throw new ResendMovedError(lease);
    const webhookIds = await resends.webhooksAfter(resend, afterId, WEBHOOKS_PAGE);
    for (const webhookId of webhookIds) {
      const part = partFor(resend, webhookId, nowMs());
      if ((await resends.nextPage(part, 1)).length === 0) continue;
      if ((await whenAbortAsked(deps, resend)) !== null) return;
      if (!(await resends.insert(part))) throw new ResendMovedError(part.id);
      yield part;
    }
    afterId = webhookIds.at(-1) ?? '';
    if (webhookIds.length < WEBHOOKS_PAGE) return;
  }
}
