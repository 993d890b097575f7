import { hasParts, partFor, type Resend } from '@posthorn/domain/resend.ts';
import { ResendMovedError, type ResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import type { WebhookStates } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { PageBudget } from './page-budget.ts';
import { sendPage, type SendPageDeps, type SentPage } from './resend-page.ts';
import type { ResendSlot } from './slot.ts';

export interface PageSizeDeps {
  targetOf: WebhookStates['targetOf'];
  pageBudget: Pick<PageBudget, 'pageSize' | 'reserve'>;
}

export interface SendResendDeps extends SendPageDeps, PageSizeDeps {
  resends: SendPageDeps['resends'] &
    Pick<ResendStore, 'countAll' | 'nextPage' | 'skipTo' | 'beginPage' | 'endPage' | 'finish'> &
    Pick<ResendStore, 'insert' | 'openParts' | 'lastWebhook' | 'webhooksAfter' | 'findShown'> &
    Pick<ResendStore, 'keepScanned'>;
}

/** Webhooks of one app that are sent to at once: a dead or slow one must not delay the others. */
const PARTS_AT_ONCE = 10;
const WEBHOOKS_PAGE = 100;

/**
 * Sends a resend page by page, an app's in parts of one webhook each: stores the page, marks its deliveries, publishes
 * them, waits until each is settled, counts them. Returns when to continue if the resend yields its slot, and null at the
 * end. Throws when it has to stop before; no part is being sent then.
 */
export async function sendResend(
  deps: SendResendDeps,
  slot: ResendSlot,
  resend: Resend,
  signal: AbortSignal,
): Promise<number | null> {
  if (hasParts(resend)) return sendParts(deps, slot, resend, signal);
  const endWorker = slot.addWorker();
  try {
    return await sendPages(deps, slot, resend, signal);
  } finally {
    endWorker();
  }
}

/** Sends all pages to one webhook. Returns when to continue if the resend yields its slot, and null at the end. */
async function sendPages(
  deps: SendResendDeps,
  slot: ResendSlot,
  started: Resend,
  signal: AbortSignal,
): Promise<number | null> {
  const { resends, nowMs } = deps;
  for (let resend = started; ;) {
    if (resend.page.length === 0) {
      if (slot.isYielding) return nowMs();
      signal.throwIfAborted();
      const { ids, lookedTo } = await resends.nextPage(resend, await pageSizeOf(deps, resend));
      const isOver = ids.length === 0 && lookedTo === null;
      const isAborted = !isOver && (await isAbortAsked(deps, resend));
      if (isOver || isAborted) {
        await resends.finish(resend, nowMs(), isAborted ? 'aborted' : 'done');
        return null;
      }
      if (ids.length === 0 && lookedTo !== null) {
        resend = await resends.skipTo(resend, lookedTo, nowMs());
        await slot.look();
        continue;
      }
      resend = await resends.beginPage(resend, ids, nowMs());
    }
    const sent = await sendWithinBudget(deps, slot, resend, signal);
    if (sent.kind === 'waiting') return sent.dueAtMs;
    resend = await resends.endPage(resend, sent, nowMs());
    if (sent.kind === 'settled') continue;
    await (sent.kind === 'aborted'
      ? resends.finish(resend, nowMs(), 'aborted')
      : failRest(deps, resend));
    return null;
  }
}

async function sendWithinBudget(
  deps: SendResendDeps,
  slot: ResendSlot,
  resend: Resend,
  signal: AbortSignal,
): Promise<SentPage> {
  const release = deps.pageBudget.reserve(resend.page.length);
  try {
    return await sendPage(deps, slot, resend, signal);
  } finally {
    release();
  }
}

/** Whether a client asked to abort the resend, or that of the app which it is a part of. */
async function isAbortAsked(
  { resends }: SendResendDeps,
  { companyId, partOf, id }: Resend,
): Promise<boolean> {
  const stored = await resends.findOne(companyId, partOf ?? id);
  return (stored?.abortAskedAtMs ?? null) !== null;
}

/** Ends the resend. What was not sent counts as failed. */
async function failRest({ resends, nowMs }: SendResendDeps, resend: Resend): Promise<void> {
  const failed = resend.failed + (await resends.countAll(resend));
  await resends.finish({ ...resend, failed }, nowMs());
}

/** Under a rate limit, a page is what it allows in 2 s: the dispatcher keeps a resend's attempts until their turn. */
export async function pageSizeOf(
  { targetOf, pageBudget }: PageSizeDeps,
  { companyId, webhookId }: Resend,
): Promise<number> {
  const webhook = webhookId === null ? null : await targetOf(companyId, webhookId);
  const size = pageBudget.pageSize();
  return Math.min(size, (webhook?.rateLimitPerSecond ?? Infinity) * 2);
}

/** Sends a resend of an app or a company: one part for each webhook that has failed deliveries, each with pages of its own. */
async function sendParts(
  deps: SendResendDeps,
  slot: ResendSlot,
  resend: Resend,
  signal: AbortSignal,
): Promise<number | null> {
  const { resends, nowMs } = deps;
  const failing = new AbortController();
  const stopping = AbortSignal.any([signal, failing.signal]);
  const scan = { toWebhookId: resend.scannedTo };
  const parts = startParts(deps, { slot, resend, scan, signal: stopping });
  const dueTimes: number[] = [];
  const work = async (): Promise<void> => {
    const endWorker = slot.addWorker();
    try {
      for await (const part of parts) {
        const dueAtMs = await sendPages(deps, slot, part, stopping);
        if (dueAtMs === null && !slot.isYielding) continue;
        dueTimes.push(dueAtMs ?? nowMs());
        break;
      }
    } catch (error) {
      failing.abort(error);
    } finally {
      endWorker();
    }
  };
  await Promise.all(Array.from({ length: PARTS_AT_ONCE }, work));
  stopping.throwIfAborted();
  if (dueTimes.length > 0) {
    await resends.keepScanned(resend, scan.toWebhookId);
    return Math.min(...dueTimes);
  }
  const { succeeded, failed } = (await resends.findShown(resend.companyId, resend.id)) ?? resend;
  const status = (await isAbortAsked(deps, resend)) ? 'aborted' : 'done';
  await resends.finish({ ...resend, succeeded, failed }, nowMs(), status);
  return null;
}

interface PartsToStart {
  slot: ResendSlot;
  resend: Resend;
  /** Moves on with the search for webhooks that have failures. */
  scan: { toWebhookId: string };
  signal: AbortSignal;
}

/** Yields the parts that were started before, then starts one for each further webhook that has failures. */
async function* startParts(
  deps: SendResendDeps,
  { slot, resend, scan, signal }: PartsToStart,
): AsyncGenerator<Resend, void, undefined> {
  const { resends, nowMs } = deps;
  const lastBegun = await resends.lastWebhook(resend);
  if (lastBegun > scan.toWebhookId) scan.toWebhookId = lastBegun;
  yield* await resends.openParts(resend);
  for (;;) {
    const webhookIds = await resends.webhooksAfter(resend, scan.toWebhookId, WEBHOOKS_PAGE);
    for (const webhookId of webhookIds) {
      signal.throwIfAborted();
      await slot.look();
      const part = partFor(resend, webhookId, nowMs());
      const { ids, lookedTo } = await resends.nextPage(part, 1);
      if (ids.length > 0 || lookedTo !== null) {
        if (await isAbortAsked(deps, resend)) return;
        if (!(await resends.insert(part))) throw new ResendMovedError(part.id);
        scan.toWebhookId = webhookId;
        yield part;
      }
      scan.toWebhookId = webhookId;
    }
    if (webhookIds.length < WEBHOOKS_PAGE) return;
  }
}
