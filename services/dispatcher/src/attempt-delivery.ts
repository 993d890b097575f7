import {
  decodeMessageCreated,
  decodeRetryDue,
  payloadlessValue,
  readRecord,
  UnreadableRecordError,
  type DueAttempt,
} from '@posthorn/domain/records/records.ts';
import type { DeadLetters } from '@posthorn/platform/dead-letters/dead-letters.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { Held, RecordMemory } from '@posthorn/platform/memory/record-memory.ts';
import type { AttemptLeases } from './once/attempt-leases.ts';
import { findTarget, type Target } from './load/find-target.ts';
import {
  DEFERRED_SINCE_HEADER,
  lastingHeaders,
  timeIn,
  turnAtOf,
  type Defer,
} from './isolation/defer-attempt.ts';
import type { Lane } from './isolation/gate/views.ts';
import type { MoveToSlowLane } from './isolation/move-to-slow-lane.ts';
import type { Candidate } from './isolation/queues/queue-state.ts';
import type { Queues } from './isolation/queues/queues.ts';
import type { LoadedWebhook, LoadWebhook } from './load/load-webhook.ts';
import type { MadeBefore } from './settle/settle-if-recorded.ts';
import type { Made, MakeAttempt } from './make-attempt.ts';
import type { Settle } from './settle/settle-delivery.ts';

export interface AttemptDeps {
  topics: { messageCreated: string; slowLane: string };
  deadLetters: DeadLetters;
  memory: Pick<RecordMemory, 'hold'>;
  leases: Pick<AttemptLeases, 'take' | 'takeAlone' | 'isKnown'>;
  madeBefore: MadeBefore;
  /** Does the work unless this resend was made already or is not asked for any more. */
  resendOnce: (due: DueAttempt, work: () => Promise<void>) => Promise<void>;
  loadWebhook: LoadWebhook;
  queues: Pick<Queues, 'enter'>;
  makeAttempt: MakeAttempt;
  moveToSlowLane: MoveToSlowLane;
  defer: Defer;
  settle: Settle;
  nowMs: () => number;
}

/** What is later than this may have been taken for lost and driven again; see RECONCILE_AFTER. */
const LATE_MS = 3_600_000;

/** A record and what it says, while it is under work. */
interface Work {
  record: LogRecord;
  due: DueAttempt;
  held: Held;
}

/**
 * Step 2, attempt: one record becomes one request to the endpoint, or is deferred, or is cancelled
 * when there is no endpoint any more. Resolves when what came of it is recorded and published.
 */
export function createAttemptDelivery(deps: AttemptDeps) {
  return async (record: LogRecord): Promise<void> => {
    const due = readRecord(() => decode(deps, record));
    if (due instanceof UnreadableRecordError) {
      await deps.deadLetters.put(record, 'unreadable_record', due.message);
      return;
    }
    const held = deps.memory.hold(record.value.length);
    try {
      await attemptOnce(deps, { record, due, held });
    } finally {
      held.release();
    }
  };
}

function decode({ topics }: AttemptDeps, { topic, value }: LogRecord): DueAttempt {
  return topic === topics.messageCreated ? decodeMessageCreated(value) : decodeRetryDue(value);
}

/** Nobody else works on the attempt meanwhile, and what was made before is not made again. */
async function attemptOnce(deps: AttemptDeps, work: Work): Promise<void> {
  const { record, due } = work;
  const { take, takeAlone, isKnown } = deps.leases;
  const isSecond = mayBeSecond(deps, record, due) || isKnown(due.attemptId);
  const release = isSecond ? await takeAlone(due.attemptId) : take(due.attemptId);
  try {
    if (isSecond && (await deps.madeBefore(due, record.headers))) return;
    if (due.trigger === 'resend') await deps.resendOnce(due, () => deliver(deps, work));
    else await deliver(deps, work);
  } finally {
    release();
  }
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

/** Every way that an attempt can go. */
async function deliver(deps: AttemptDeps, work: Work): Promise<void> {
  const { record, due } = work;
  // Cancelled when it was accepted: final, also when the webhook was enabled meanwhile.
  if (due.isCancelled) return deps.settle({ due, reason: 'webhook_disabled' });
  for (;;) {
    const target = await findTarget(deps.loadWebhook, due.webhookId);
    if (target.kind !== 'send') return settleUnsent(deps, record, due, target);
    const admission = await deps.queues.enter(candidateOf(deps, work, target.to));
    if (admission.kind === 'slow lane') return deps.moveToSlowLane(record, due);
    if (admission.kind === 'defer') return deps.defer(record, due, admission);
    const made = await deps.makeAttempt(record, due, admission.turn);
    if (made.kind === 'made') return settleMade(deps, work, made.settled);
    if (made.kind === 'message missing') return settleMissing(deps, record, due);
  }
}

function candidateOf(
  deps: AttemptDeps,
  work: Work,
  { webhook: { id, url, rateLimitPerSecond } }: LoadedWebhook,
): Candidate {
  const { record, due } = work;
  return {
    webhookId: id,
    companyId: due.companyId,
    url,
    lane: laneOf(deps, record, due),
    trigger: due.trigger,
    rateLimitPerSecond,
    turnAtMs: turnAtOf(record, deps.nowMs()),
    deferredSinceMs: timeIn(record.headers, DEFERRED_SINCE_HEADER),
    dropPayload: () => {
      dropPayload(work);
    },
  };
}

function laneOf({ topics }: AttemptDeps, { topic }: LogRecord, { trigger }: DueAttempt): Lane {
  if (topic === topics.slowLane) return 'slow';
  return trigger === 'first' || trigger === 'test' ? 'first' : 'retry';
}

/** Both are slices of what was fetched at once, and one of them would keep all of it in memory. */
function dropPayload({ record, due, held }: Work): void {
  if (!due.payload) return;
  record.value = payloadlessValue(record.value);
  due.payload = null;
  held.setTo(record.value.length);
}

/** Until it is recorded, the beginning of the answer is kept too. */
function settleMade(
  { settle }: AttemptDeps,
  { record, held }: Work,
  settled: Extract<Made, { kind: 'made' }>['settled'],
): Promise<void> {
  held.setTo(record.value.length + (settled.attempt.response?.length ?? 0));
  return settle(settled);
}

async function settleUnsent(
  { settle, nowMs }: AttemptDeps,
  { headers }: LogRecord,
  due: DueAttempt,
  target: Exclude<Target, { kind: 'send' }>,
): Promise<void> {
  if (target.kind === 'cancel') return settle({ due, reason: target.reason });
  const { attemptId: id, attemptNumber: number, trigger } = due;
  const attempt = {
    id,
    number,
    trigger,
    outcome: 'aborted' as const,
    statusCode: null,
    response: null,
    responseHeaders: [],
    startedAtMs: nowMs(),
    durationMs: 0,
  };
  await settle({ due, attempt, headers: lastingHeaders(headers) });
}

async function settleMissing(
  { deadLetters, settle }: AttemptDeps,
  record: LogRecord,
  due: DueAttempt,
): Promise<void> {
  await deadLetters.put(record, 'message_missing', 'the message is not stored any more');
  await settle({ due, reason: 'message_missing' });
}
