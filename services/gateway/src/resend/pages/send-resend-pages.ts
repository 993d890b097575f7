import type { ResendStore } from '@posthorn/platform/mongo/resends/resends.ts';
import type { Resend } from '@posthorn/domain/resend.ts';
import { whenAbortAsked } from '../abort-resend.ts';
import type { PageBudget } from './resend-page-budget.ts';
import { sendPage, type SendPageDeps, type SentPage } from './send-resend-page.ts';

export interface SendPagesDeps extends SendPageDeps {
  resends: Pick<ResendStore, 'findOne' | 'count' | 'nextPage' | 'beginPage' | 'endPage' | 'finish'>;
  /** The webhook's own limit in attempts a second; null without one. */
  rateLimitOf: (companyId: string, webhookId: string) => Promise<number | null>;
  pageBudget: Pick<PageBudget, 'pageSize' | 'reserve'>;
}

/** Sends all pages of a resend of one webhook. Throws when it has to stop before the end. */
export async function sendPages(
  deps: SendPagesDeps,
  started: Resend,
  lease: string,
  signal: AbortSignal,
): Promise<void> {
  const { resends, nowMs } = deps;
  for (let resend = started; ;) {
    const page =
      resend.page.length > 0
        ? resend.page
        : await resends.nextPage(resend, await pageSizeOf(deps, resend));
    if (page.length === 0) return resends.finish(resend, nowMs());
    const isBegun = resend.page.length > 0;
    if (!isBegun && (await whenAbortAsked(deps, resend)) !== null) {
      return resends.finish(resend, nowMs(), 'aborted');
    }
    resend = await resends.beginPage(resend, page, nowMs());
    const sent = await sendWithinBudget(deps, resend, lease, signal);
    resend = await resends.endPage(resend, sent, nowMs());
    if (sent.kind === 'given_up') return failRest(deps, resend);
    if (sent.kind === 'aborted') return resends.finish(resend, nowMs(), 'aborted');
  }
}

async function sendWithinBudget(
  deps: SendPagesDeps,
  resend: Resend,
  lease: string,
  signal: AbortSignal,
): Promise<SentPage> {
  const release = deps.pageBudget.reserve(resend.page.length);
  try {
    return await sendPage(deps, resend, lease, signal);
  } finally {
    release();
  }
}

/** Ends the resend. What was not sent counts as failed. */
async function failRest({ resends, nowMs }: SendPagesDeps, resend: Resend): Promise<void> {
  const failed = resend.failed + (await resends.count(resend));
  await resends.finish({ ...resend, failed }, nowMs());
}

/** Under a rate limit, a page is what it allows in 2 s: the dispatcher keeps a resend's attempts until their turn. */
async function pageSizeOf(
  { rateLimitOf, pageBudget }: SendPagesDeps,
  { companyId, webhookId }: Resend,
): Promise<number> {
  const perSecond = webhookId === null ? null : await rateLimitOf(companyId, webhookId);
  const size = pageBudget.pageSize();
  return perSecond === null ? size : Math.min(size, perSecond * 2);
}
