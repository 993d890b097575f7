import { setTimeout as wait } from 'node:timers/promises';
import { encodeRetryDue, refOf } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type { MarkedDelivery, ResendMarks } from '@posthorn/platform/mongo/resends/resend-marks.ts';
import {
  isOfOne,
  ResendMovedError,
  type Resend,
  type ResendStore,
} from '@posthorn/platform/mongo/resends/resends.ts';
import { freeOrphans } from '@posthorn/platform/mongo/resends/free-orphans.ts';

export interface SendPageDeps {
  /** Names this process as the holder of leases. */
  holder: string;
  resends: Pick<ResendStore, 'findOne'>;
  marks: Pick<ResendMarks, 'ask' | 'read' | 'free'>;
  leases: LeaseStore;
  /** Whether the endpoint fails, as far as is known. */
  isCircuitOpen: (webhookId: string) => Promise<boolean>;
  log: Pick<RecordLog, 'publish'>;
  retryDueTopic: string;
  nowMs: () => number;
}

export const LEASE_MS = 15_000;
/** An attempt takes 15 s at most; beyond this a record was probably lost, and the dispatcher drops a copy. */
const PUBLISH_AGAIN_MS = 120_000;
const POLL_MS = { first: 20, most: 2_000 };
/** Without a success, before a dead endpoint of an app is given up: two repeats, each of them a probe. */
const PATIENCE_MS = 300_000;

interface Counts {
  succeeded: number;
  failed: number;
}

export interface SentPage extends Counts {
  /** Not all of it was settled: the endpoint takes nothing. */
  isGivenUp: boolean;
}

/**
 * One page of a resend: marks its deliveries, publishes them, and resolves with what became of them
 * when each is settled. Throws ResendMovedError when another process has taken over.
 */
export async function sendPage(
  deps: SendPageDeps,
  resend: Resend,
  lease: string,
  signal: AbortSignal,
): Promise<SentPage> {
  const { marks, leases, holder, nowMs } = deps;
  const publishedAtMs = new Map<string, number>();
  // Marked by us once: a mark of another resend that stands there now says that ours was settled.
  const taken = new Set<string>();
  const isHopeless = watchEndpoint(deps, resend);
  for (let pollMs = POLL_MS.first; ; pollMs = Math.min(pollMs * 2, POLL_MS.most)) {
    signal.throwIfAborted();
    if (!(await leases.hold(lease, holder, LEASE_MS))) throw new ResendMovedError(lease);
    if (pollMs === POLL_MS.most) await freeForeign(deps, resend);
    const untaken = resend.page.filter((id) => !taken.has(id));
    if (untaken.length > 0) await marks.ask({ ...resend, page: untaken });
    const found = await marks.read(resend.companyId, resend.page);
    const open = found.filter((delivery) => isOpen(delivery, resend, taken));
    for (const { id, mark } of found) if (mark?.resendId === resend._id) taken.add(id);
    const counts = countOf(found, resend);
    if (open.length === 0) return { ...counts, isGivenUp: false };
    if (await isHopeless(counts)) return giveUp(deps, resend);
    const due = open.filter(
      ({ id, mark }) =>
        mark?.resendId === resend._id &&
        nowMs() - (publishedAtMs.get(id) ?? -Infinity) > PUBLISH_AGAIN_MS,
    );
    await deps.log.publish(due.map((delivery) => toRecord(deps, delivery)));
    for (const { id } of due) publishedAtMs.set(id, nowMs());
    await wait(pollMs, undefined, { signal });
  }
}

async function freeForeign(deps: SendPageDeps, { _id, companyId, page }: Resend): Promise<void> {
  const found = await deps.marks.read(companyId, page);
  await freeOrphans(
    deps,
    found.filter(({ mark }) => mark?.resendId !== _id),
  );
}

/** Still to be sent or on its way, by this resend or by another one before it. */
function isOpen(
  { id, mark, status }: MarkedDelivery,
  resend: Resend,
  taken: ReadonlySet<string>,
): boolean {
  if (mark?.resendId === resend._id) return mark.state === 'asked';
  if (taken.has(id)) return false;
  // Whoever asked for this one delivery is told 409 when another resend has it: nothing to wait for.
  if (isOfOne(resend)) return false;
  return mark?.state === 'asked' || status === 'exhausted' || status === 'cancelled';
}

/**
 * The dispatcher puts off what a dead endpoint does not take, for half a day and page by page. That
 * is right for who sends to this one webhook, while a resend of an app has to come to its end.
 */
function watchEndpoint(
  { isCircuitOpen, nowMs }: SendPageDeps,
  { partOf, webhookId }: Resend,
): (counts: Counts) => Promise<boolean> {
  let most = 0;
  let sinceMs = nowMs();
  return async ({ succeeded }) => {
    if (succeeded > most) [most, sinceMs] = [succeeded, nowMs()];
    if (partOf === undefined || webhookId === null) return false;
    return nowMs() - sinceMs > PATIENCE_MS && isCircuitOpen(webhookId);
  };
}

/** Records that are still under way find no mark and are dropped. */
async function giveUp({ marks }: SendPageDeps, resend: Resend): Promise<SentPage> {
  const { _id, companyId, page } = resend;
  await marks.free(companyId, _id, page);
  return { ...countOf(await marks.read(companyId, page), resend), isGivenUp: true };
}

/** A delivery that is not stored any more counts as failed. */
function countOf(found: readonly MarkedDelivery[], { page }: Resend): Counts {
  const succeeded = found.filter(({ status }) => status === 'delivered').length;
  return { succeeded, failed: page.length - succeeded };
}

function toRecord(
  { retryDueTopic, nowMs }: SendPageDeps,
  delivery: MarkedDelivery,
): OutgoingRecord {
  const { webhookId, mark } = delivery;
  const attemptNumber = mark?.attemptNumber ?? 1;
  const due = { attemptNumber, dueAtMs: nowMs(), trigger: 'resend' as const };
  return {
    topic: retryDueTopic,
    key: webhookId,
    value: encodeRetryDue({ ...refOf(delivery), ...due }),
    headers: {},
  };
}
