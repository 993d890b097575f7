import type { Resend, ResendStore } from '@posthorn/platform/mongo/resends/resends.ts';
import type { ResendRoom } from './resend-room.ts';
import { sendPage, type SendPageDeps, type SentPage } from './send-resend-page.ts';

export interface SendPagesDeps extends SendPageDeps {
  resends: Pick<ResendStore, 'findOne' | 'count' | 'nextPage' | 'beginPage' | 'endPage' | 'finish'>;
  /** The webhook's own limit in attempts a second; null without one. */
  rateLimitOf: (companyId: string, webhookId: string) => Promise<number | null>;
  room: Pick<ResendRoom, 'pageSize' | 'hold'>;
}

/** Goes through a resend of one webhook to its end. Throws when it has to stop before. */
export async function sendPages(
  deps: SendPagesDeps,
  begun: Resend,
  lease: string,
  signal: AbortSignal,
): Promise<void> {
  const { resends, nowMs } = deps;
  for (let resend = begun; ;) {
    const page =
      resend.page.length > 0
        ? resend.page
        : await resends.nextPage(resend, await pageSizeOf(deps, resend));
    if (page.length === 0) return resends.finish(resend, nowMs());
    resend = await resends.beginPage(resend, page, nowMs());
    const result = await sendHeld(deps, resend, lease, signal);
    resend = await resends.endPage(resend, result, nowMs());
    if (result.isGivenUp) return giveUpRest(deps, resend);
  }
}

async function sendHeld(
  deps: SendPagesDeps,
  resend: Resend,
  lease: string,
  signal: AbortSignal,
): Promise<SentPage> {
  const giveBack = deps.room.hold(resend.page.length);
  try {
    return await sendPage(deps, resend, lease, signal);
  } finally {
    giveBack();
  }
}

/** What was not sent counts as failed, as what was sent in vain. */
async function giveUpRest({ resends, nowMs }: SendPagesDeps, resend: Resend): Promise<void> {
  const failed = resend.failed + (await resends.count(resend));
  await resends.finish({ ...resend, failed }, nowMs());
}

/** Two seconds' worth under a rate limit: the dispatcher holds a resend's attempts until their turn. */
async function pageSizeOf(
  { rateLimitOf, room }: SendPagesDeps,
  { companyId, webhookId }: Resend,
): Promise<number> {
  const perSecond = webhookId === null ? null : await rateLimitOf(companyId, webhookId);
  return perSecond === null ? room.pageSize() : Math.min(room.pageSize(), perSecond * 2);
}
