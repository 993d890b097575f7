import {
  decideLook,
  hasHeadEnded,
  type LookDecision,
  orderingNow,
  type FoundHead,
  type Ordering,
  type Sequence,
  type SequenceHead,
} from '@posthorn/domain/delivery/sequence.ts';
import { orderedRecord } from '@posthorn/domain/records/retry-due.ts';
import type { Loop } from '@posthorn/platform/async/loop.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { readAll } from '@posthorn/platform/mongo/days/read-days.ts';
import type {
  Follower,
  SequenceChange,
  SequenceStore,
} from '@posthorn/platform/mongo/messages/sequences.ts';
import type { WaitingDeliveries } from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import type { WebhookStates } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { ReportIncident } from '@posthorn/platform/records/operator-incidents.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { createLeasedLoop, type LeaseHolder } from '@posthorn/platform/work/leased-loop.ts';
import { Gauge, type Registry } from 'prom-client';

export interface LookAtSequencesDeps extends LeaseHolder {
  sequences: Pick<
    SequenceStore,
    'dueAt' | 'findHeads' | 'followers' | 'changeMany' | 'remove' | 'estimate'
  >;
  waiting: Pick<WaitingDeliveries, 'endWait'>;
  webhooks: Pick<WebhookStates, 'statesOf'>;
  records: Pick<RecordLog, 'publish'>;
  retryDueTopic: string;
  /** Reports blocked keys to the operator. */
  report: ReportIncident;
  metrics: SequenceLookMetrics;
  /** The time of the database. */
  nowMs: () => number;
  monotonicMs: () => number;
  logger: Logger;
}

export interface SequenceLookMetrics {
  /** How late the sequence is that has been due for the longest, in milliseconds; 0 when none is due. */
  onLate: (ms: number) => void;
  /** How many sequences there are, about; null while another process looks at them. */
  onCounted: (count: { all: number; blocked: number } | null) => void;
}

/** What stands behind a skipped or exhausted head begins within a second. */
const EVERY_MS = 500;
const PAGE = 500;
/** 20,000 a second at most: a change of a webhook may free 100,000 keys. */
const PAGES_PER_TICK = 20;
const COUNT_EVERY_MS = 60_000;
/** An index entry each: half a second. */
const MAX_COUNTED = 1_000_000;

/**
 * Looks at the sequences of ordering keys that are due, by one process at a time: their heads have ended outside a
 * dispatcher, or may have. Goes on behind a head that has ended: the next head is stored first, then published, then its
 * wait is ended. After a crash in between the next look finds a head that waits for its turn, and publishes it.
 */
export function createLookAtSequences(deps: LookAtSequencesDeps): Loop {
  const { metrics, sequences, monotonicMs } = deps;
  let countedAtMs = -Infinity;
  const count = async (): Promise<void> => {
    if (monotonicMs() - countedAtMs < COUNT_EVERY_MS) return;
    countedAtMs = monotonicMs();
    metrics.onCounted(await sequences.estimate(MAX_COUNTED));
  };
  return createLeasedLoop({
    ...deps,
    name: 'looks at ordering keys',
    lease: 'sequences',
    keepsLease: true,
    everyMs: EVERY_MS,
    async run(keep, signal) {
      for (let pages = 0; pages < PAGES_PER_TICK && !signal.aborted; pages += 1) {
        if (!(await keep())) {
          metrics.onLate(0);
          metrics.onCounted(null);
          return;
        }
        await count();
        if (!(await lookAtPage(deps))) return;
      }
    },
  });
}

/** A due sequence and the decision about it. */
interface Looked {
  sequence: Sequence;
  decision: LookDecision<Follower>;
  /** The head when it is pending, or what comes first behind it. */
  first: Follower | null;
}

/** Returns false when nothing was due. */
async function lookAtPage(deps: LookAtSequencesDeps): Promise<boolean> {
  const { sequences, metrics, nowMs } = deps;
  const atMs = nowMs();
  const page = await sequences.dueAt(atMs, PAGE);
  metrics.onLate(page.reduce((most, { dueAtMs }) => Math.max(most, atMs - dueAtMs), 0));
  if (page.length === 0) return false;
  const looked = await lookAtAll(deps, page, atMs);
  const changes = looked.flatMap((each) => changeOf(each) ?? []);
  await sequences.changeMany(changes, nowMs());
  reportBlocked(deps, looked);
  await release(deps, looked);
  for (const { sequence, decision } of looked) {
    if (decision.kind === 'delete') await sequences.remove(sequence);
  }
  return true;
}

async function lookAtAll(
  { sequences, webhooks }: LookAtSequencesDeps,
  page: readonly Sequence[],
  nowMs: number,
): Promise<Looked[]> {
  const heads = page.map(({ head }) => head);
  const [found, states] = await Promise.all([
    sequences.findHeads(heads, nowMs),
    webhooks.statesOf([...new Set(page.map(({ webhookId }) => webhookId))]),
  ]);
  return readAll(page, async (sequence) => {
    const head = found.get(sequence.head.deliveryId) ?? 'missing';
    const ordering = orderingNow(states.get(sequence.webhookId));
    const first = await findFirst(sequences, sequence, { head, ordering });
    const decision = decideLook({ sequence, found: head, ordering, next: first, nowMs });
    return { sequence, decision, first };
  });
}

/** Reads the first pending delivery: behind a head that has ended, or the head that waits for its turn. */
async function findFirst(
  sequences: LookAtSequencesDeps['sequences'],
  sequence: Sequence,
  { head, ordering }: { head: FoundHead; ordering: Ordering | null },
): Promise<Follower | null> {
  const hasEnded = hasHeadEnded(sequence.head, head, ordering);
  const waits = typeof head === 'object' && head.waiting === 'order';
  if (!hasEnded && !waits) return null;
  const from = sequence.head.position + (hasEnded ? 1 : 0);
  const [first = null] = await sequences.followers(sequence, from, 1);
  return first;
}

function changeOf({ sequence, decision }: Looked): SequenceChange | null {
  switch (decision.kind) {
    case 'wait':
      return { sequence, isBlocked: false, againAfterMs: decision.againAfterMs };
    case 'block':
      return { sequence, isBlocked: true, againAfterMs: decision.againAfterMs };
    case 'release_head':
      return { sequence, isBlocked: false, againAfterMs: AGAIN_AFTER_MS };
    case 'go_on': {
      const head = headOf(decision.to);
      return { sequence, head, isBlocked: false, againAfterMs: AGAIN_AFTER_MS };
    }
    case 'delete':
      return null;
  }
}

/** A head that is published, and whose record is lost, is published again by the next look. */
const AGAIN_AFTER_MS = 1_000;

function headOf({ deliveryId, messageId, position, removeAtMs }: Follower): SequenceHead {
  return { deliveryId, messageId, position, ...(removeAtMs !== undefined && { removeAtMs }) };
}

/** Publishes those that wait for their turn. One that does not has a record, or is on hold. */
async function release(
  { records, retryDueTopic: topic, waiting, nowMs }: LookAtSequencesDeps,
  looked: readonly Looked[],
): Promise<void> {
  const ready = looked.flatMap(({ decision, first }) => {
    const isReleased = decision.kind === 'release_head' || decision.kind === 'go_on';
    return isReleased && first?.waiting === 'order' ? [first] : [];
  });
  if (ready.length === 0) return;
  const atMs = nowMs();
  await records.publish(ready.map((each) => ({ topic, ...orderedRecord(each, atMs) })));
  await waiting.endWait(ready, nowMs());
}

function reportBlocked({ report, logger }: LookAtSequencesDeps, looked: readonly Looked[]): void {
  for (const { sequence, decision } of looked) {
    if (decision.kind !== 'block' || sequence.isBlocked) continue;
    const { companyId, webhookId, head } = sequence;
    const { deliveryId } = head;
    logger.info({ companyId, webhookId, deliveryId }, 'ordering key blocked by its head');
    const detail = `delivery ${deliveryId} is exhausted, and later ones with its ordering key wait`;
    report({ type: 'endpoint.key_blocked', companyId, webhookId, detail });
  }
}

export function createSequenceLookMetrics(registry: Registry): SequenceLookMetrics {
  const registers = [registry];
  const late = new Gauge({
    name: 'posthorn_sequence_release_late_seconds',
    help: 'For how long the ordering key has been due that waits the longest to go on, as last seen by this process; 0 without one, and while another process looks at them.',
    registers,
  });
  const stored = new Gauge({
    name: 'posthorn_sequences',
    help: 'Ordering keys with a delivery that waits for a retry, a hold or its turn, and those that an exhausted delivery blocks; an estimate of each minute, absent while another process looks at them.',
    labelNames: ['state'],
    registers,
  });
  late.set(0);
  return {
    onLate(ms) {
      late.set(ms / 1_000);
    },
    onCounted(count) {
      stored.reset();
      if (!count) return;
      stored.set({ state: 'waiting' }, Math.max(0, count.all - count.blocked));
      stored.set({ state: 'blocked' }, count.blocked);
    },
  };
}
