import { setTimeout as wait } from 'node:timers/promises';
import { encodeRetryDue, refOf } from '@posthorn/domain/records.ts';
import type { OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { Logger } from '@posthorn/platform/logger.ts';
import type { LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type { MarkedDelivery, ResendMarks } from '@posthorn/platform/mongo/resend-marks.ts';
import {
  isOfOne,
  ResendMovedError,
  type Resend,
  type ResendStore,
} from '@posthorn/platform/mongo/resends.ts';

export interface RunResendsDeps {
  /** Names this process as the holder of leases. */
  holder: string;
  resends: Omit<ResendStore, 'insert' | 'remove' | 'count'>;
  marks: Pick<ResendMarks, 'ask' | 'read'>;
  /** The webhook's own limit in attempts a second; null without one. */
  rateLimitOf: (companyId: string, webhookId: string) => Promise<number | null>;
  leases: LeaseStore;
  log: Pick<RecordLog, 'publish'>;
  retryDueTopic: string;
  nowMs: () => number;
  logger: Logger;
}

export interface ResendRunner {
  start: () => void;
  /** Begins this one now, however many are running. */
  wake: (resend: Resend) => void;
  /** Works on everything that runs until it is done or held by another process. */
  tick: () => Promise<void>;
  stop: () => Promise<void>;
}

/** Deliveries of one resend that are under way at once: bounds memory, and spares a recovering endpoint. */
const PAGE = 500;
const MAX_AT_ONCE = 50;
const LEASE_MS = 15_000;
const EVERY_MS = 1_000;
/** An attempt takes 15 s at most; beyond this a record was probably lost, and a second one does no harm. */
const PUBLISH_AGAIN_MS = 120_000;
const POLL_MS = { first: 20, most: 500 };

/**
 * Goes through resends page by page: note the page, mark its deliveries, publish them, wait until
 * each is settled, count them. Whatever stops in between is taken up by the next process.
 */
export function createResendRunner(deps: RunResendsDeps): ResendRunner {
  const running = new Map<string, Promise<void>>();
  const closing = new AbortController();
  let timer: NodeJS.Timeout | undefined;

  function begin(resend: Resend): Promise<void> {
    const done = run(deps, resend, closing.signal)
      .catch((error: unknown) => {
        if (closing.signal.aborted || error instanceof ResendMovedError) return;
        deps.logger.warn({ err: error, resendId: resend._id }, 'resend waits for the next round');
      })
      .finally(() => running.delete(resend._id));
    running.set(resend._id, done);
    return done;
  }

  /** A round may have found it before whoever began it wakes us: the lease tells processes apart, not these. */
  const workOn = (resend: Resend): Promise<void> => running.get(resend._id) ?? begin(resend);

  async function tick(): Promise<void> {
    const found = await deps.resends.listRunning(MAX_AT_ONCE).catch(() => []);
    await Promise.all(found.map(workOn));
  }

  return {
    start() {
      timer = setInterval(() => void tick(), EVERY_MS);
    },
    wake: (resend) => void workOn(resend),
    tick,
    async stop() {
      clearInterval(timer);
      closing.abort();
      await Promise.all(running.values());
    },
  };
}

async function run(deps: RunResendsDeps, listed: Resend, signal: AbortSignal): Promise<void> {
  const { leases, holder, resends, nowMs } = deps;
  const lease = `resend/${listed._id}`;
  if (!(await leases.hold(lease, holder, LEASE_MS))) return;
  try {
    // Read again under the lease: the list may be older than the last holder's work.
    let resend = await resends.findOne(listed.companyId, listed._id);
    while (resend?.status === 'running') {
      const page =
        resend.page.length > 0
          ? resend.page
          : await resends.nextPage(resend, await pageSizeOf(deps, resend));
      if (page.length === 0) {
        await resends.finish(resend, nowMs());
        return;
      }
      resend = await resends.beginPage(resend, page, nowMs());
      const result = await sendPage(deps, resend, lease, signal);
      resend = await resends.endPage(resend, result, nowMs());
    }
  } finally {
    await leases.release(lease, holder);
  }
}

/** Two seconds' worth under a rate limit: the dispatcher holds a resend's attempts until their turn. */
async function pageSizeOf(
  { rateLimitOf }: RunResendsDeps,
  { companyId, webhookId }: Resend,
): Promise<number> {
  const perSecond = await rateLimitOf(companyId, webhookId);
  return perSecond === null ? PAGE : Math.min(PAGE, perSecond * 2);
}

interface Counts {
  succeeded: number;
  failed: number;
}

async function sendPage(
  deps: RunResendsDeps,
  resend: Resend,
  lease: string,
  signal: AbortSignal,
): Promise<Counts> {
  const { marks, leases, holder, nowMs } = deps;
  const publishedAtMs = new Map<string, number>();
  // Marked by us once: a mark of another resend that stands there now says that ours was settled.
  const taken = new Set<string>();
  for (let pollMs = POLL_MS.first; ; pollMs = Math.min(pollMs * 2, POLL_MS.most)) {
    signal.throwIfAborted();
    if (!(await leases.hold(lease, holder, LEASE_MS))) throw new ResendMovedError(lease);
    await marks.ask({ ...resend, page: resend.page.filter((id) => !taken.has(id)) });
    const found = await marks.read(resend.companyId, resend.page);
    const open = found.filter((delivery) => isOpen(delivery, resend, taken));
    for (const { id, mark } of found) if (mark?.resendId === resend._id) taken.add(id);
    if (open.length === 0) return countOf(found, resend);
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

/** A delivery that is not stored any more counts as failed. */
function countOf(found: readonly MarkedDelivery[], { page }: Resend): Counts {
  const succeeded = found.filter(({ status }) => status === 'delivered').length;
  return { succeeded, failed: page.length - succeeded };
}

function toRecord(
  { retryDueTopic, nowMs }: RunResendsDeps,
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
