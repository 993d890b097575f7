import {
  type Attempt,
  isFinal,
  type RecordedDelivery,
} from '@posthorn/domain/delivery/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { createReadTogether } from '@posthorn/platform/async/read-together.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { ConsumeOptions, IsOurs, LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { ResendMarks } from '@posthorn/platform/mongo/webhooks/resend-marks.ts';
import type { ReadingReporter } from '../announce.ts';
import type { AttemptLeases, HeldLease } from './attempt-leases.ts';
import { reservedAtOf } from '../defer.ts';

interface Claim {
  remaining: Remaining;
  /** The lease of the attempt; to be released once its outcome is recorded and its consequence published. */
  lease: HeldLease;
}

export interface DoubleSendGuard {
  /**
   * Resolves when nobody else works on the attempt, with what is left to do of it. Rejects when the
   * store cannot be asked; then nothing needs to be released.
   */
  claim: (record: LogRecord, due: DueAttempt, isOurs: IsOurs) => Promise<Claim>;
}

interface DoubleSendDeps {
  leases: Pick<AttemptLeases, 'take' | 'takeWhenFree' | 'isKnown'>;
  checkRecorded: CheckRecorded;
  slowLaneTopic: string;
  nowMs: () => number;
}

/**
 * An attempt that is later than this may have a copy further away than the remembered ids reach, which
 * cover ten seconds at 5,000 attempts/s. After Kafka was away for five minutes the gateway and the sweep
 * had both published the backlog, and 63,115 of 250,000 deliveries were made twice.
 */
const LATE_MS = 10_000;

/** By so much the clocks of two machines may differ. */
const CLOCKS_DIFFER_MS = 5_000;

const SEND: Remaining = { kind: 'send' };

/**
 * Keeps an attempt from being sent twice. Kafka delivers a record at least once, so each attempt
 * may be read again: after a crash, when a partition changes hands, or from a copy of its record.
 *
 * What prevents a double send:
 * 1. A lease in the memory of this process: of two records of one attempt the second waits until the
 *    outcome of the first is recorded (attempt-leases.ts).
 * 2. The announcement of that lease in Redis, for attempts that last longer than 120 ms or begin in a rebalance: a dispatcher
 *    that takes over a partition waits for what its former owner still works on. A process that was frozen
 *    for longer than a lease lasts claims the attempt again before its request. Work that hung until its consumer
 *    was replaced makes no request any more.
 * 3. The document of the delivery, written before the offset is committed: an attempt that it has is
 *    not made again (`createCheckRecorded`). Only an attempt that may have been read before is looked up:
 *    its record lay in a partition when that changed hands; it is a retry that was due before that, so
 *    that a former owner may have read another copy (the retry service releases an attempt twice, up
 *    to a minute apart, when its own partitions change hands); it came over the slow lane or from a deferral; it is
 *    over ten seconds late; or its id is one of the last 50,000 (attempt-leases.ts), which cover half a
 *    minute at 1,500 attempts/s. All others are not looked up: the hot path asks nobody.
 * 4. The mark of a resend, which is looked up for every resend: it is sent only while it is asked for.
 * 5. Ids that are derived from message, webhook and attempt number: records and documents that are
 *    written twice are recognised as the same attempt.
 * 6. In the retry service, the check at release: an attempt that is recorded already is dropped
 *    (domain/delivery/when-cancelled.ts), and one that was parked twice is released once per batch.
 *
 * What cannot be prevented (docs/contract.md C10.1). The endpoint recognises all of it by `webhook-id`:
 * - After a crash: the attempts that were under way, and those whose response was not recorded yet: it
 *   came in the last 100 ms (settle.ts), or its batch was being written.
 * - A request whose response did not arrive in time, although the endpoint processed it: its retry.
 * - Without Redis: the attempts that a living former owner still works on when a partition changes
 *   hands.
 * - An attempt that was made and whose outcome could not be recorded before its process ended, as in
 *   an outage of MongoDB that lasts longer than its drain. While the process lives, its lease is kept.
 * - An attempt that was made and whose outcome is not recorded 90 s later although the stores answer and others are
 *   recorded, when its partition has gone: a fault of the program has stopped it, and the partition must go on.
 */
export function createDoubleSendGuard(deps: DoubleSendDeps): DoubleSendGuard {
  const { leases, checkRecorded } = deps;
  return {
    async claim(record, due, isOurs) {
      const { attemptId } = due;
      const mayBeUnderWay = mayBeReadBefore(deps, record, due);
      const lease = mayBeUnderWay
        ? await leases.takeWhenFree(attemptId, isOurs)
        : leases.take(attemptId, isOurs);
      const isLookedUp = mayBeUnderWay || isLate(deps, due) || due.trigger === 'resend';
      if (!isLookedUp) return { remaining: SEND, lease };
      try {
        return { remaining: await checkRecorded(due), lease };
      } catch (error) {
        lease.release();
        throw error;
      }
    },
  };
}

/** Item 3 of the list above, without the late ones. */
function mayBeReadBefore(deps: DoubleSendDeps, record: LogRecord, due: DueAttempt): boolean {
  const { leases, slowLaneTopic, nowMs } = deps;
  return (
    record.isInherited ||
    mayHaveCopyElsewhere(record, due) ||
    record.topic === slowLaneTopic ||
    reservedAtOf(record, nowMs()) !== null ||
    leases.isKnown(due.attemptId)
  );
}

/**
 * First attempts are left out: after an outage of Kafka the whole backlog was due before its partitions came here, and
 * a claim in Redis costs more than the look-up of what is late.
 */
function mayHaveCopyElsewhere(
  { ownedSinceMs }: LogRecord,
  { trigger, dueAtMs }: DueAttempt,
): boolean {
  return trigger === 'retry' && dueAtMs < ownedSinceMs + CLOCKS_DIFFER_MS;
}

/**
 * Both copies of a late attempt are in one partition, which one process reads: no claim in Redis is
 * needed, which would cost more than the look-up. What this process inherited with a partition is claimed, and a copy
 * that comes meanwhile waits for it.
 */
function isLate({ nowMs }: DoubleSendDeps, { dueAtMs }: DueAttempt): boolean {
  return nowMs() - dueAtMs > LATE_MS;
}

/** The part of an attempt that is still to be done, by the record of its delivery. */
export type Remaining =
  | { kind: 'send' }
  /** It failed, and whoever recorded it may have died before the failure was published. */
  | { kind: 'publish_failure'; attempt: Attempt }
  /** Everything is done; or it is a resend that was made or given up. */
  | { kind: 'drop' };

/** Looks up the record of the delivery, and changes nothing. */
export type CheckRecorded = (due: DueAttempt) => Promise<Remaining>;

interface CheckRecordedDeps {
  deliveries: Pick<DeliveryStore, 'recordedOf'>;
  marks: Pick<ResendMarks, 'askedNumbers'>;
  keepTrying: KeepTrying;
}
const DROP: Remaining = { kind: 'drop' };

/** Deliveries are spread over collections of days: a read of 200 asks one or two of these. */
const READ_AT_ONCE = { maxItems: 200 };

/**
 * The document of a delivery tells whether an attempt was made, and the mark of a resend whether it
 * is still asked for. Both are written before the offset of the record is committed, and both are
 * there when Redis is not (docs/decisions/0016-the-delivery-is-its-done-mark.md).
 */
export function createCheckRecorded({
  deliveries,
  marks,
  keepTrying,
}: CheckRecordedDeps): CheckRecorded {
  const readDelivery = createReadTogether(
    (ids) => keepTrying('look up recorded attempts', () => deliveries.recordedOf([...ids])),
    READ_AT_ONCE,
  );
  const readMark = createReadTogether(
    (ids) => keepTrying('look up the marks of resends', () => marks.askedNumbers([...ids])),
    READ_AT_ONCE,
  );
  return async (due) =>
    due.trigger === 'resend'
      ? remainingOfResend(due, await readMark(due.deliveryId))
      : remainingOf(due, await readDelivery(due.deliveryId));
}

function remainingOfResend(due: DueAttempt, askedNumber: number | undefined): Remaining {
  return askedNumber === due.attemptNumber ? SEND : DROP;
}

function remainingOf(due: DueAttempt, recorded: RecordedDelivery | undefined): Remaining {
  if (!recorded) return SEND;
  if (isFinal(recorded.status) || recorded.attemptCount > due.attemptNumber) return DROP;
  if (recorded.attemptCount < due.attemptNumber || !recorded.lastAttempt) return SEND;
  return { kind: 'publish_failure', attempt: recorded.lastAttempt };
}

type Assignment = Readonly<Record<string, readonly number[]>>;

/** Gives a record its place at once, and returns the function that handles it. */
export type EnterRecord = (record: LogRecord, isOurs: IsOurs) => () => Promise<void>;

interface TakeOverDeps {
  /** Reads the circuits and pauses that former owners have shared; the partitions are all that this process has now. */
  takeOverEndpoints: (partitions: ReadonlySet<number>) => Promise<void>;
  /** Announces the attempts that this process works on. */
  handOverAttempts: () => void;
  /** Waits until former owners have announced the attempts that they still work on. */
  takeOverAttempts: () => Promise<void>;
  enter: EnterRecord;
  messageCreatedTopic: string;
  /** Learns how far the fresh records are begun. */
  reading: Pick<ReadingReporter, 'note' | 'forget'>;
}

export interface TakeOver {
  /** To be called before partitions can go to another process. */
  onRebalancing: () => void;
  /** To be called when a group has assigned its partitions, by topic, before their first record is handled. */
  onAssigned: (groupId: string, assignment: Assignment) => void;
  /** Makes the attempt of a record, once what its former owner shared is taken over. */
  handle: ConsumeOptions['handle'];
}

export function createTakeOver(deps: TakeOverDeps): TakeOver {
  const { messageCreatedTopic, reading } = deps;
  const byGroup = new Map<string, Assignment>();
  let takenOver: Promise<unknown> = Promise.resolve();
  return {
    onRebalancing: deps.handOverAttempts,
    onAssigned(groupId, assignment) {
      if (messageCreatedTopic in assignment) reading.forget();
      byGroup.set(groupId, assignment);
      const all = [...byGroup.values()].flatMap((ofGroup) => Object.values(ofGroup).flat());
      takenOver = Promise.all([deps.takeOverEndpoints(new Set(all)), deps.takeOverAttempts()]);
    },
    async handle(record, isOurs) {
      if (record.topic === messageCreatedTopic) reading.note(record);
      // Before the first wait, while records still come in their order.
      const attempt = deps.enter(record, isOurs);
      await takenOver;
      await attempt();
    },
  };
}
