import { filterOf } from '@posthorn/domain/parse-filter.ts';
import { replayedRecord } from '@posthorn/domain/records/retry-due.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import { type PageProgress, replayWants, type Resend } from '@posthorn/domain/resend.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { replaySpanOf, type ReplayStore } from '@posthorn/platform/mongo/messages/replays.ts';
import type { ResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import type { ResentTo } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { pageSizeOf, type PageSizeDeps } from './send-resend.ts';
import type { ResendSlot } from './slot.ts';

export interface SendReplayDeps extends PageSizeDeps {
  replays: ReplayStore;
  resends: Pick<
    ResendStore,
    'findOne' | 'skipTo' | 'beginPage' | 'endPage' | 'keepProgress' | 'finish'
  >;
  records: Pick<RecordLog, 'publish'>;
  retryDueTopic: string;
  /** Announces that deliveries of old messages wait for the time of their message. */
  announceTimed: () => void;
  nowMs: () => number;
}

/** Messages that are examined for one page, which has those that the webhook lacks. */
const EXAMINED = 500;
/** Milliseconds between two looks at the deliveries of a page: half of the time that they have waited. */
const POLL_MS = { min: 20, max: 60_000 };
/** After this time the page waits without a slot. */
const QUIET_MS = 2_000;

/**
 * Sends the messages of a replay to its webhook page by page, oldest first: stores the ids of the page, adds the webhook
 * to the messages and a pending delivery of each, publishes the first attempts, and waits until each of them was made.
 * Failures follow the schedule like all others, so a page is counted when it is published. Killed at any step, it is
 * continued from the stored page: whatever is done again finds its own work, because the ids of deliveries and attempts
 * are derived, and the records are those of the sweep, which dispatchers look up before the request.
 *
 * Returns when to continue if the replay yields its slot, and null at the end.
 */
export async function sendReplay(
  deps: SendReplayDeps,
  slot: ResendSlot,
  started: Resend,
  signal: AbortSignal,
): Promise<number | null> {
  const endWorker = slot.addWorker();
  try {
    for (let resend = started; ;) {
      signal.throwIfAborted();
      await slot.look();
      if (resend.page.length === 0) {
        if (slot.isYielding) return deps.nowMs();
        const next = await beginNext(deps, resend);
        if (!next) return null;
        resend = next;
        continue;
      }
      const done = await sendPage(deps, slot, resend, signal);
      if (typeof done === 'number') return done;
      resend = done;
    }
  } finally {
    endWorker();
  }
}

/**
 * Stores the next page, or ends the replay and returns null. A page is skipped when the webhook lacks none of its messages,
 * or when none passes its filter.
 */
async function beginNext(deps: SendReplayDeps, resend: Resend): Promise<Resend | null> {
  const { resends, replays, nowMs } = deps;
  const webhook = await replayedTo(deps, resend);
  if (!webhook) {
    await resends.finish(resend, nowMs(), 'aborted');
    return null;
  }
  const wants = replayWants(webhook, resend);
  const { ids, readTo } = await replays.findMissing(replaySpanOf(webhook, resend), wants, EXAMINED);
  // The next page begins behind the last message of this one.
  const page = ids.slice(0, await pageSizeOf(deps, resend));
  const { filter = null } = webhook;
  const passing =
    filter === null ? page : await replays.findPassing(resend.companyId, page, filterOf(filter));
  if (passing.length > 0) return resends.beginPage(resend, passing, nowMs());
  const examinedTo = page.length < ids.length ? (page.at(-1) ?? readTo) : readTo;
  if (examinedTo !== null) return resends.skipTo(resend, examinedTo, nowMs());
  await resends.finish(resend, nowMs());
  return null;
}

/**
 * Returns the webhook while the replay may go on. Null when a client has aborted it, when the webhook was deleted or
 * disabled, and when a client has cancelled what is pending there since the replay began.
 */
async function replayedTo(
  { resends, targetOf }: SendReplayDeps,
  { id, companyId, webhookId, createdAtMs }: Resend,
): Promise<ResentTo | null> {
  const webhook = webhookId === null ? null : await targetOf(companyId, webhookId);
  const stored = await resends.findOne(companyId, id);
  const isEnded = (stored?.abortAskedAtMs ?? null) !== null || webhook?.disabled === true;
  if (isEnded || (webhook?.cancelBeforeMs ?? 0) > createdAtMs) return null;
  return webhook;
}

/** Returns the replay behind its page, or when to continue while deliveries of the page wait. */
async function sendPage(
  deps: SendReplayDeps,
  slot: ResendSlot,
  resend: Resend,
  signal: AbortSignal,
): Promise<Resend | number> {
  const release = deps.pageBudget.reserve(resend.page.length);
  try {
    const progress = resend.progress ?? (await publishPage(deps, resend));
    const left = await untilAttempted(deps, slot, progress, signal);
    const { succeeded } = progress;
    if (left.open.length === 0 || slot.abortAskedAtMs !== null) {
      const failed = resend.page.length - succeeded;
      return await deps.resends.endPage(resend, { succeeded, failed }, deps.nowMs());
    }
    await deps.resends.keepProgress(resend, { ...progress, open: left.open });
    return left.dueAtMs;
  } finally {
    release();
  }
}

/** Adds the webhook to the messages of the page and publishes the first attempts. May be repeated. */
async function publishPage(
  { replays, records, retryDueTopic, announceTimed, nowMs }: SendReplayDeps,
  { companyId, webhookId, page: messageIds, createdAtMs }: Resend,
): Promise<PageProgress> {
  if (webhookId === null) throw new ImpossibleError('a replay is to a webhook');
  const atMs = nowMs();
  const added = await replays.add({ companyId, webhookId, messageIds, createdAtMs, atMs });
  const open = await replays.unattempted(added.map(({ deliveryId }) => deliveryId));
  const wanted = new Set(open);
  // The others wait for the time of their message, or an earlier run of this page has published them.
  if (open.length < added.length) announceTimed();
  const due = added.filter(({ deliveryId }) => wanted.has(deliveryId));
  const outgoing = due.map((ref) => ({ topic: retryDueTopic, ...replayedRecord(ref, atMs) }));
  if (due.length > 0) await records.publish(outgoing);
  const times = { publishedAtMs: atMs, beganAtMs: atMs, movedAtMs: atMs, successAtMs: atMs };
  return { open, unpublished: [], succeeded: added.length, copies: 1, ...times };
}

interface Left {
  /** The deliveries without an attempt. */
  open: string[];
  dueAtMs: number;
}

/**
 * Resolves when each delivery of the page has had its first attempt, or when the replay yields its slot: an endpoint gets
 * no more at once than it takes.
 */
async function untilAttempted(
  { replays, nowMs }: SendReplayDeps,
  slot: ResendSlot,
  { open: published, beganAtMs }: PageProgress,
  signal: AbortSignal,
): Promise<Left> {
  let open = published;
  for (;;) {
    signal.throwIfAborted();
    await slot.look();
    open = await replays.unattempted(open);
    const waitedMs = Math.max(0, nowMs() - beganAtMs);
    const dueAtMs = nowMs() + Math.min(POLL_MS.max, Math.max(POLL_MS.min, waitedMs / 2));
    const left = { open, dueAtMs };
    if (open.length === 0 || slot.abortAskedAtMs !== null) return left;
    if (!(await slot.wait(dueAtMs, waitedMs > QUIET_MS, signal))) return left;
  }
}
