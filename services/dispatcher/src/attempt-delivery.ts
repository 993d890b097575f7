import {
  decodeMessageCreated,
  decodeRetryDue,
  readRecord,
  UnreadableRecordError,
  type DueAttempt,
} from '@posthorn/domain/records.ts';
import type { DeadLetters } from '@posthorn/platform/dead-letters.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { AttemptLeases } from './attempt-leases.ts';
import type { EndpointLanes } from './endpoint-lanes.ts';
import type { Lane } from './endpoint-line.ts';
import type { FindTarget } from './find-target.ts';
import type { LoadedWebhook } from './load-webhook.ts';
import type { MadeBefore } from './made-before.ts';
import type { MakeAttempt } from './make-attempt.ts';
import type { Pace } from './pace-webhook.ts';
import type { PassCircuit } from './pass-circuit.ts';
import { turnAtOf, type PutOff } from './put-off.ts';
import type { Settle } from './settle-delivery.ts';
import type { SpillOver } from './spill-over.ts';

export interface AttemptDeps {
  topics: { messageCreated: string; slowLane: string };
  deadLetters: DeadLetters;
  madeBefore: MadeBefore;
  /** Does the work unless this resend was made already or is not asked for any more. */
  resendOnce: (due: DueAttempt, work: () => Promise<void>) => Promise<void>;
  settle: Settle;
  findTarget: FindTarget;
  putOff: PutOff;
  circuit: Pick<PassCircuit, 'isPutOff'>;
  pace: Pace;
  leases: Pick<AttemptLeases, 'take' | 'takeAlone' | 'isKnown'>;
  lanes: Pick<EndpointLanes, 'enter'>;
  spillOver: SpillOver;
  makeAttempt: MakeAttempt;
  nowMs: () => number;
}

/** A turn nearer than this is waited for here and not in a delay topic. */
const NEAR_MS = 5_000;
/** What is later than this may have been taken for lost and driven again; see RECONCILE_AFTER. */
const LATE_MS = 3_600_000;

/**
 * Step 2, attempt: one record becomes one request to the endpoint, or is put off, or is cancelled
 * when there is no endpoint any more. Resolves when what came of it is recorded and published.
 */
export function createAttemptDelivery(deps: AttemptDeps) {
  return async (record: LogRecord): Promise<void> => {
    const due = readRecord(() => decode(deps, record));
    if (due instanceof UnreadableRecordError) {
      await deps.deadLetters.put(record, 'unreadable_record', due.message);
      return;
    }
    const { take, takeAlone, isKnown } = deps.leases;
    const isSecond = mayBeSecond(deps, record, due) || isKnown(due.attemptId);
    const release = isSecond ? await takeAlone(due.attemptId) : take(due.attemptId);
    try {
      if (isSecond && (await deps.madeBefore(due, record.headers))) return;
      const work = (): Promise<void> => deliver(deps, record, due);
      await (due.trigger === 'resend' ? deps.resendOnce(due, work) : work());
    } finally {
      release();
    }
  };
}

function decode({ topics }: AttemptDeps, { topic, value }: LogRecord): DueAttempt {
  return topic === topics.messageCreated ? decodeMessageCreated(value) : decodeRetryDue(value);
}

/** Of a partition that changed hands; or a copy, made shortly before a crash, of a record read again. */
function mayBeSecond(
  { topics, nowMs }: AttemptDeps,
  record: LogRecord,
  { dueAtMs }: DueAttempt,
): boolean {
  const isCopied = record.topic === topics.slowLane || turnAtOf(record, nowMs()) !== null;
  return record.isInherited || isCopied || nowMs() - dueAtMs > LATE_MS;
}

async function deliver(deps: AttemptDeps, record: LogRecord, due: DueAttempt): Promise<void> {
  // Cancelled when it was accepted: final, also when the webhook was enabled meanwhile.
  if (due.isCancelled) return deps.settle({ due, reason: 'webhook_disabled' });
  const target = await deps.findTarget(due, record.headers);
  if (!target || (await isPutOff(deps, record, due, target))) return;
  const turn = await deps.lanes.enter(due.webhookId, laneOf(deps, record, due));
  if (turn) await deps.makeAttempt(record, due, turn);
  else await deps.spillOver(record, due, target.webhook);
}

/** Before its turn, behind an open circuit or above its rate limit an attempt is not used up. */
async function isPutOff(
  deps: AttemptDeps,
  record: LogRecord,
  due: DueAttempt,
  { webhook }: LoadedWebhook,
): Promise<boolean> {
  const turnAtMs = turnAtOf(record, deps.nowMs()) ?? 0;
  if (webhook.rateLimitPerSecond === null && turnAtMs > deps.nowMs() + NEAR_MS) {
    await deps.putOff(record, due, { turnAtMs, fit: 'few' });
    return true;
  }
  if (await deps.circuit.isPutOff(record, due, webhook)) return true;
  return !(await deps.pace(record, due, webhook));
}

function laneOf({ topics }: AttemptDeps, { topic }: LogRecord, { trigger }: DueAttempt): Lane {
  if (topic === topics.slowLane) return 'slow';
  return trigger === 'first' || trigger === 'test' ? 'first' : 'retry';
}
