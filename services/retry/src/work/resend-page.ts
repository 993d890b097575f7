import { resentRecord } from '@posthorn/domain/records/retry-due.ts';
import {
  isOfOne,
  type MarkedDelivery,
  type PageProgress,
  type Resend,
} from '@posthorn/domain/resend.ts';
import { untilAborted } from '@posthorn/platform/async/pause.ts';
import type { OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { freeOrphans, type ResendMarks } from '@posthorn/platform/mongo/webhooks/resend-marks.ts';
import type { ResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import type { OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import type { WaitingOwner } from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import type { ResendSlot } from './slot.ts';

export interface SendPageDeps {
  resends: Pick<ResendStore, 'findOne' | 'keepProgress'>;
  marks: Pick<ResendMarks, 'ask' | 'read' | 'free'>;
  records: Pick<RecordLog, 'publish'>;
  retryDueTopic: string;
  circuits: Pick<OpenCircuits, 'read'>;
  /** Whether the webhook or its app is on hold, or the company suspended: dispatchers make no attempt then. */
  isOnHold: (webhook: WaitingOwner) => Promise<boolean>;
  nowMs: () => number;
}

interface PageCounts {
  succeeded: number;
  failed: number;
}

/**
 * `given_up`: the endpoint fails, and some deliveries of the page have no result. They count as failed.
 * `aborted`: a client asked for it, and deliveries without a result were not sent and are not counted.
 * `waiting`: the resend yields its slot, and the page is to be continued at `dueAtMs`.
 */
export type SentPage =
  | (PageCounts & { kind: 'settled' | 'given_up' | 'aborted' })
  | { kind: 'waiting'; dueAtMs: number };

/** Milliseconds between two checks of a page: its age, so that a page that is settled fast is noticed fast. */
const POLL_MS = { min: 20, max: 2_000 };
/** After this time without a result, the page waits without a slot, for half of the time without a result. */
const QUIET_MS = 2_000;
const MAX_WAIT_MS = 60_000;
/** The wait of a deferred page is as long as the time without a success: failed probes do not shorten it. */
const MAX_DEFERRED_WAIT_MS = 600_000;
/**
 * An attempt takes 15 s at most. After this time without a result its record was probably lost; if it
 * was not, the dispatcher drops the copy.
 */
const AGAIN_MS = 120_000;
/** Ten copies in half a day. */
const MAX_AGAIN_MS = 2 * 3_600_000;
/** Time without a success after which a dead endpoint is given up: deferred attempts have come back as a probe by then. */
const GIVE_UP_AFTER_MS = 300_000;
/**
 * After an abort, the page under way is left this long to settle, so that it is counted: an attempt takes 15 s at
 * most. What was deferred until then would keep the resend running for hours.
 */
const SETTLE_MS = 20_000;

/**
 * Sends the page of a resend: marks its deliveries, publishes them, and resolves with their results when each is
 * settled. It continues where the process before it has stopped. Throws ResendMovedError when another process has
 * moved the resend on, and the reason of `signal` when that is aborted.
 */
export async function sendPage(
  deps: SendPageDeps,
  slot: ResendSlot,
  resend: Resend,
  signal: AbortSignal,
): Promise<SentPage> {
  const { nowMs } = deps;
  let progress = resend.progress
    ? notAfter(nowMs(), resend.progress)
    : beginningOf(resend, nowMs());
  for (;;) {
    signal.throwIfAborted();
    await slot.look();
    const seen = await readOpen(deps, resend, progress);
    progress = seen.progress;
    if (seen.open.length === 0) return { kind: 'settled', ...countsOf(progress, resend) };
    const endpoint = await endpointOf(deps, resend, progress);
    progress = withHold(progress, endpoint, nowMs());
    if (endpoint === 'failing' && mayGiveUp(resend, progress, nowMs())) {
      return giveUp(deps, resend, progress);
    }
    const { abortAskedAtMs } = slot;
    if (abortAskedAtMs !== null && nowMs() - abortAskedAtMs > SETTLE_MS) {
      return drop(deps, resend, progress);
    }
    progress = await publish(deps, { ...seen, resend, progress, endpoint }, signal);
    const next = nextCheck(resend, progress, { endpoint, abortAskedAtMs, nowMs: nowMs() });
    if (await slot.wait(next.atMs, next.isQuiet, signal)) continue;
    if (progress !== resend.progress) await deps.resends.keepProgress(resend, progress);
    return { kind: 'waiting', dueAtMs: next.isQuiet ? next.atMs : nowMs() };
  }
}

function beginningOf({ page }: Resend, nowMs: number): PageProgress {
  return {
    open: page,
    unpublished: page,
    succeeded: 0,
    copies: 0,
    publishedAtMs: nowMs,
    beganAtMs: nowMs,
    movedAtMs: nowMs,
    successAtMs: nowMs,
  };
}

/**
 * The clock of the process that stored the progress may be ahead. A page that began in the future would be read every
 * 20 ms, and would keep its slot, until then.
 */
function notAfter(nowMs: number, progress: PageProgress): PageProgress {
  const { publishedAtMs, beganAtMs, movedAtMs, successAtMs } = progress;
  if (Math.max(publishedAtMs, beganAtMs, movedAtMs, successAtMs) <= nowMs) return progress;
  return {
    ...progress,
    publishedAtMs: Math.min(publishedAtMs, nowMs),
    beganAtMs: Math.min(beganAtMs, nowMs),
    movedAtMs: Math.min(movedAtMs, nowMs),
    successAtMs: Math.min(successAtMs, nowMs),
  };
}

interface Seen {
  progress: PageProgress;
  /** The deliveries without a result, as they are stored. */
  open: readonly MarkedDelivery[];
}

/** Marks the deliveries that other resends have released, and reads those without a result. */
async function readOpen(deps: SendPageDeps, resend: Resend, progress: PageProgress): Promise<Seen> {
  const { marks, nowMs } = deps;
  const unpublished = new Set(progress.unpublished);
  if (unpublished.size > 0) await marks.ask({ ...resend, page: progress.unpublished });
  const found = await marks.read(resend.companyId, progress.open);
  const open = found.filter((each) => isOpen(each, resend, unpublished));
  if (nowMs() - progress.beganAtMs >= POLL_MS.max) {
    const ofOthers = open.filter((each) => !isMarkedBy(resend, each));
    await freeOrphans(deps, ofOthers);
  }
  if (open.length === progress.open.length) return { progress, open };
  const openIds = new Set(open.map(({ id }) => id));
  const successes = found.filter(({ id, status }) => status === 'delivered' && !openIds.has(id));
  const succeeded = progress.succeeded + successes.length;
  return {
    open,
    progress: {
      ...progress,
      open: [...openIds],
      unpublished: progress.unpublished.filter((id) => openIds.has(id)),
      succeeded,
      movedAtMs: nowMs(),
      successAtMs: successes.length > 0 ? nowMs() : progress.successAtMs,
    },
  };
}

type OwnDelivery = MarkedDelivery & { mark: NonNullable<MarkedDelivery['mark']> };

function isMarkedBy(resend: Resend, delivery: MarkedDelivery): delivery is OwnDelivery {
  return delivery.mark?.resendId === resend.id;
}

/** True while the delivery is still to be sent or under way, by this resend or by an earlier one. */
function isOpen(
  delivery: MarkedDelivery,
  resend: Resend,
  unpublished: ReadonlySet<string>,
): boolean {
  const { id, mark, status } = delivery;
  if (isMarkedBy(resend, delivery)) return delivery.mark.state === 'asked';
  // It was published, so it carried the mark of this resend, and was settled before another one marked it.
  if (!unpublished.has(id)) return false;
  // The request to resend one delivery got 409 when another resend has it: there is nothing to wait for.
  if (isOfOne(resend)) return false;
  return mark?.state === 'asked' || status === 'exhausted' || status === 'cancelled';
}

/** A delivery that is no longer stored counts as failed. */
function countsOf({ succeeded }: PageProgress, { page }: Resend): PageCounts {
  return { succeeded, failed: page.length - succeeded };
}

/** `failing`: its circuit is open. `held`: dispatchers drop the records, and leave the marks. */
type Endpoint = 'works' | 'failing' | 'held';

/**
 * Reads MongoDB before the first copy, and Redis only when the result matters. Without Redis every endpoint counts as
 * working.
 */
async function endpointOf(
  { circuits, isOnHold, nowMs }: SendPageDeps,
  { companyId, webhookId }: Resend,
  { movedAtMs, successAtMs, publishedAtMs, copies }: PageProgress,
): Promise<Endpoint> {
  if (webhookId === null) return 'works';
  if (copies === 0 && (await isOnHold({ companyId, webhookId }))) return 'held';
  if (nowMs() - successAtMs < QUIET_MS) return 'works';
  const probeAtMs = await circuits.read(companyId, webhookId).catch(() => null);
  const isFailing = probeAtMs !== null;
  const isQuiet = nowMs() - movedAtMs >= QUIET_MS || nowMs() - publishedAtMs > AGAIN_MS;
  // A circuit that opened before the hold stays open, because nothing probes it.
  if ((isFailing || isQuiet) && (await isOnHold({ companyId, webhookId }))) return 'held';
  return isFailing ? 'failing' : 'works';
}

/** After the hold all open deliveries are published again at once, and their endpoint has the time of a new page. */
function withHold(progress: PageProgress, endpoint: Endpoint, nowMs: number): PageProgress {
  if (endpoint === 'held') return progress.isHeld ? progress : { ...progress, isHeld: true };
  if (!progress.isHeld) return progress;
  return { ...progress, isHeld: false, copies: 0, movedAtMs: nowMs, successAtMs: nowMs };
}

/**
 * The rule by which the resend of an app gives up one of its webhooks, when the endpoint still fails. The dispatcher
 * defers attempts to a dead endpoint for half a day, page by page. That is right for the resend of one webhook, but
 * the resend of an app has to end.
 */
function mayGiveUp({ partOf }: Resend, { successAtMs }: PageProgress, nowMs: number): boolean {
  return partOf !== null && nowMs - successAtMs > GIVE_UP_AFTER_MS;
}

/** The dispatcher drops records that are still under way, because it finds no mark. */
async function giveUp(
  { marks }: SendPageDeps,
  resend: Resend,
  { open, succeeded }: PageProgress,
): Promise<SentPage> {
  const { id, companyId, page } = resend;
  await marks.free(companyId, id, open);
  const found = await marks.read(companyId, open);
  const all = succeeded + found.filter(({ status }) => status === 'delivered').length;
  return { kind: 'given_up', succeeded: all, failed: page.length - all };
}

/** Counts the sent deliveries of the page: those with a result, and those recorded while their marks were freed. */
async function drop(
  { marks }: SendPageDeps,
  resend: Resend,
  { open, succeeded }: PageProgress,
): Promise<SentPage> {
  const { id, companyId, page } = resend;
  await marks.free(companyId, id, open);
  const found = await marks.read(companyId, open);
  const isSent = (each: MarkedDelivery): boolean =>
    isMarkedBy(resend, each) && each.attemptCount >= each.mark.attemptNumber;
  const unsent = found.filter((each) => !isSent(each)).length;
  const delivered = found.filter((each) => isSent(each) && each.status === 'delivered').length;
  const all = succeeded + delivered;
  return { kind: 'aborted', succeeded: all, failed: page.length - unsent - all };
}

/**
 * Publishes the deliveries marked since the last check, and all open ones again when their records may be lost. What is on
 * hold is published after its end: dispatchers would drop it.
 */
async function publish(
  { records, retryDueTopic, nowMs }: SendPageDeps,
  { resend, open, progress, endpoint }: Seen & { resend: Resend; endpoint: Endpoint },
  signal: AbortSignal,
): Promise<PageProgress> {
  if (endpoint === 'held') return progress;
  const isAgain = progress.copies === 0 || isLikelyLost(progress, endpoint, nowMs());
  const unpublished = new Set(progress.unpublished);
  const own = open.filter((each) => isMarkedBy(resend, each));
  const due = own.filter(({ id }) => isAgain || unpublished.has(id));
  if (due.length === 0) return progress;
  const toRecord = (delivery: OwnDelivery): OutgoingRecord => {
    const attempt = { attemptNumber: delivery.mark.attemptNumber, dueAtMs: nowMs() };
    return { topic: retryDueTopic, ...resentRecord(delivery, attempt) };
  };
  // Kafka may answer late: a stop must not wait for it, and whoever takes over publishes again.
  await untilAborted(records.publish(due.map(toRecord)), signal);
  const published = new Set(due.map(({ id }) => id));
  const left = progress.unpublished.filter((id) => !published.has(id));
  return {
    ...progress,
    unpublished: left,
    ...(isAgain && { copies: progress.copies + 1, publishedAtMs: nowMs() }),
    ...(left.length < unpublished.size && { movedAtMs: nowMs() }),
  };
}

/**
 * While the circuit of the endpoint is open, the records are most likely deferred and come back by themselves: each copy
 * would be deferred beside them for as long as that lasts. So the time doubles with each copy then, from 4 minutes to 2
 * hours.
 */
function isLikelyLost(
  { copies, publishedAtMs }: PageProgress,
  endpoint: Exclude<Endpoint, 'held'>,
  nowMs: number,
): boolean {
  const deferredMs = Math.min(AGAIN_MS * 2 ** copies, MAX_AGAIN_MS);
  return nowMs - publishedAtMs > (endpoint === 'works' ? AGAIN_MS : deferredMs);
}

/** Returns when to check the page again: not after the time to give it up or to drop it. */
function nextCheck(
  { partOf }: Resend,
  progress: PageProgress,
  at: { nowMs: number; endpoint: Endpoint; abortAskedAtMs: number | null },
): { atMs: number; isQuiet: boolean } {
  const { nowMs, endpoint, abortAskedAtMs } = at;
  const { movedAtMs, beganAtMs, successAtMs } = progress;
  const isDeferred = endpoint !== 'works';
  const quietMs = nowMs - (isDeferred ? successAtMs : movedAtMs);
  // What is on hold needs no slot: the end of the hold makes it due (`continueHeld`).
  const isQuiet = endpoint === 'held' || quietMs >= QUIET_MS;
  const pollMs = Math.min(Math.max(nowMs - beganAtMs, POLL_MS.min), POLL_MS.max);
  const growingMs = isDeferred
    ? Math.min(quietMs, MAX_DEFERRED_WAIT_MS)
    : Math.min(quietMs / 2, MAX_WAIT_MS);
  const waitMs = isQuiet ? Math.max(growingMs, POLL_MS.max) : pollMs;
  const times = [
    ...(partOf === null ? [] : [successAtMs + GIVE_UP_AFTER_MS + 1]),
    ...(abortAskedAtMs === null ? [] : [abortAskedAtMs + SETTLE_MS + 1]),
  ].filter((timeMs) => timeMs > nowMs);
  return { atMs: Math.min(nowMs + waitMs, ...times), isQuiet };
}
