import { setTimeout as wait } from 'node:timers/promises';
import { encodeRetryDue } from '@posthorn/domain/records/records.ts';
import { refOf } from '@posthorn/domain/message/delivery.ts';
import { untilAborted } from '@posthorn/platform/async/until-aborted.ts';
import type { OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { LeaseStore } from '@posthorn/platform/mongo/leases/leases.ts';
import { freeOrphans } from '@posthorn/platform/mongo/resends/free-orphans.ts';
import type { ResendMarks } from '@posthorn/platform/mongo/resends/resend-marks.ts';
import type { MarkedDelivery } from '@posthorn/domain/resend.ts';
import { ResendMovedError, type ResendStore } from '@posthorn/platform/mongo/resends/resends.ts';
import { isOfOne, type Resend } from '@posthorn/domain/resend.ts';
import { countSent, shouldDropPage } from '../abort-resend.ts';
import { createGiveUpRule, isCircuitOpen, type GiveUpDeps } from './give-up-on-endpoint.ts';
import { isDueDespiteDeferral, mayBeLost, type Published } from '../when-published-again.ts';

export interface SendPageDeps extends GiveUpDeps {
  /** Names this process as the holder of leases. */
  holder: string;
  resends: Pick<ResendStore, 'findOne'>;
  marks: Pick<ResendMarks, 'ask' | 'read' | 'free'>;
  leases: LeaseStore;
  records: Pick<RecordLog, 'publish'>;
  retryDueTopic: string;
  /** Whether the company is suspended, so that its attempts are deferred. */
  isSuspended: (companyId: string) => Promise<boolean>;
}

const POLL_MS = { first: 20, max: 2_000 };

export interface SentPage {
  /**
   * `given_up`: the endpoint fails, and some deliveries of the page have no result. They count as failed.
   * `aborted`: a client asked for it, and what has no result was not sent and is not counted.
   */
  kind: 'settled' | 'given_up' | 'aborted';
  succeeded: number;
  failed: number;
}

/**
 * Sends one page of a resend: marks its deliveries, publishes them, and resolves with their results
 * when each is settled. Throws ResendMovedError when another process has taken the resend over, and
 * the reason of `signal` when that is aborted.
 */
export async function sendPage(
  deps: SendPageDeps,
  resend: Resend,
  lease: string,
  signal: AbortSignal,
): Promise<SentPage> {
  const { marks, leases, holder } = deps;
  const published = new Map<string, Published>();
  // Deliveries that this resend has marked. One that carries another resend's mark was settled.
  const marked = new Set<string>();
  const progress = createGiveUpRule(deps, resend);
  for (let pollMs = POLL_MS.first; ; pollMs = Math.min(pollMs * 2, POLL_MS.max)) {
    signal.throwIfAborted();
    if (!(await leases.hold(lease, holder))) throw new ResendMovedError(lease);
    if (pollMs === POLL_MS.max) await freeOrphanedMarks(deps, resend);
    const unmarked = resend.page.filter((id) => !marked.has(id));
    if (unmarked.length > 0) await marks.ask({ ...resend, page: unmarked });
    const found = await marks.read(resend.companyId, resend.page);
    const open = found.filter((delivery) => isOpen(delivery, resend, marked));
    for (const delivery of found) if (isMarkedBy(resend, delivery)) marked.add(delivery.id);
    const counts = countOf(found, resend);
    if (open.length === 0) return { kind: 'settled', ...counts };
    progress.report(counts.succeeded);
    if (await progress.shouldGiveUp()) return giveUp(deps, resend);
    if (await shouldDropPage(deps, resend)) return dropPage(deps, resend, open);
    const due = await findDue(deps, resend, open, published);
    // Kafka may answer late: a stop must not wait for it, and whoever takes over publishes again.
    await untilAborted(publish(deps, due, published), signal);
    await wait(pollMs, undefined, { signal });
  }
}

/** The marked deliveries that were not published yet, or whose records may be lost. */
async function findDue(
  deps: SendPageDeps,
  resend: Resend,
  open: readonly MarkedDelivery[],
  published: ReadonlyMap<string, Published>,
): Promise<OwnDelivery[]> {
  const own = open.filter((delivery) => isMarkedBy(resend, delivery));
  const due = own.filter(({ id }) => mayBeLost(published.get(id), deps.nowMs()));
  const [repeated] = due.filter(({ id }) => published.has(id));
  // A page has deliveries of one webhook.
  if (!repeated || !(await isLikelyDeferred(deps, repeated))) return due;
  return due.filter(({ id }) => isDueDespiteDeferral(published.get(id), deps.nowMs()));
}

/** The circuit of the endpoint is open, or the company is suspended. */
async function isLikelyDeferred(
  { circuits, isSuspended }: SendPageDeps,
  { webhookId, companyId }: MarkedDelivery,
): Promise<boolean> {
  return (await isCircuitOpen(circuits, webhookId)) || isSuspended(companyId);
}

async function publish(
  deps: SendPageDeps,
  due: readonly OwnDelivery[],
  published: Map<string, Published>,
): Promise<void> {
  if (due.length === 0) return;
  const { records, nowMs } = deps;
  await records.publish(due.map((delivery) => toRecord(deps, delivery)));
  for (const { id } of due) {
    published.set(id, { atMs: nowMs(), times: (published.get(id)?.times ?? 0) + 1 });
  }
}

type OwnDelivery = MarkedDelivery & { mark: NonNullable<MarkedDelivery['mark']> };

function isMarkedBy(resend: Resend, delivery: MarkedDelivery): delivery is OwnDelivery {
  return delivery.mark?.resendId === resend.id;
}

/** Frees the deliveries of the page that carry the mark of a resend that has ended. */
async function freeOrphanedMarks(deps: SendPageDeps, resend: Resend): Promise<void> {
  const found = await deps.marks.read(resend.companyId, resend.page);
  await freeOrphans(
    deps,
    found.filter((delivery) => !isMarkedBy(resend, delivery)),
  );
}

/** True while the delivery is still to be sent or under way, by this resend or by an earlier one. */
function isOpen(delivery: MarkedDelivery, resend: Resend, marked: ReadonlySet<string>): boolean {
  const { id, mark, status } = delivery;
  if (isMarkedBy(resend, delivery)) return delivery.mark.state === 'asked';
  if (marked.has(id)) return false;
  // The request to resend one delivery got 409 when another resend has it: there is nothing to wait for.
  if (isOfOne(resend)) return false;
  return mark?.state === 'asked' || status === 'exhausted' || status === 'cancelled';
}

/** The dispatcher drops records that are still under way, because it finds no mark. */
async function giveUp({ marks }: SendPageDeps, resend: Resend): Promise<SentPage> {
  const { id, companyId, page } = resend;
  await marks.free(companyId, id, page);
  return { kind: 'given_up', ...countOf(await marks.read(companyId, page), resend) };
}

async function dropPage(
  { marks }: SendPageDeps,
  resend: Resend,
  open: readonly MarkedDelivery[],
): Promise<SentPage> {
  const { id, companyId, page } = resend;
  await marks.free(companyId, id, page);
  const found = await marks.read(companyId, page);
  const dropped = new Set(open.map((delivery) => delivery.id));
  return { kind: 'aborted', ...countSent(resend, found, dropped) };
}

/** A delivery that is no longer stored counts as failed. */
function countOf(
  found: readonly MarkedDelivery[],
  { page }: Resend,
): Pick<SentPage, 'succeeded' | 'failed'> {
  const succeeded = found.filter(({ status }) => status === 'delivered').length;
  return { succeeded, failed: page.length - succeeded };
}

function toRecord({ retryDueTopic, nowMs }: SendPageDeps, delivery: OwnDelivery): OutgoingRecord {
  const { attemptNumber } = delivery.mark;
  const due = { attemptNumber, dueAtMs: nowMs(), trigger: 'resend' as const };
  return {
    topic: retryDueTopic,
    key: delivery.webhookId,
    value: encodeRetryDue({ ...refOf(delivery), ...due }),
    headers: {},
  };
}
