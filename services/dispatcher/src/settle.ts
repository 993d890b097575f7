import {
  settleAttempt,
  settleCancelled,
  settleWaiting,
  type SettledDelivery,
} from '@posthorn/domain/delivery/settlement.ts';
import {
  type Attempt,
  type CancelReason,
  type DeliveryState,
  endedAtMs,
  isFinal,
  refOf,
} from '@posthorn/domain/delivery/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import {
  encodeDeliveryFailed,
  encodeDisabling,
  logFieldsOf,
} from '@posthorn/domain/records/records.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import type { RetrySchedule } from '@posthorn/domain/delivery/schedule.ts';
import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { LogRecord, OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { PayloadErasure } from '@posthorn/platform/mongo/messages/erase-payloads.ts';
import type {
  FinishedResend,
  ResendMarks,
} from '@posthorn/platform/mongo/webhooks/resend-marks.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { AttemptCounter } from '@posthorn/platform/mongo/messages/write-stats.ts';
import type { DispatcherMetrics } from './metrics.ts';
import type { DisablingAttempt } from './webhooks.ts';

/** An attempt that was made. */
export interface SettledAttempt {
  kind: 'attempted';
  due: DueAttempt;
  attempt: Attempt;
  /** The app of the webhook; null for a global one. */
  appId: string | null;
  /** Bytes of the payload that was sent; 0 when nothing was. */
  payloadBytes: number;
  headers: LogRecord['headers'];
  /** Why the delivery ends with this failed attempt; null when it does not, and after a success. */
  cancelReason: CancelReason | null;
  /** It was recorded and counted before; only its failure may not have been published. */
  isRecorded: boolean;
}

/** The outcome of a due attempt: it was made, or its delivery was cancelled before, or waits while it is on hold. */
export type Settled =
  | SettledAttempt
  | { kind: 'cancelled'; due: DueAttempt; reason: CancelReason }
  /** Until the time of its message, in milliseconds since 1970; null while it is on hold. */
  | { kind: 'waiting'; due: DueAttempt; untilMs: number | null };

/** Resolves when the outcome is stored and Kafka has acknowledged what follows from it. */
export type Settle = (settled: Settled) => Promise<void>;

/** Announces attempts of watched companies. */
export type AnnounceAttempt = (settled: SettledAttempt) => void;

interface SettleDeps {
  erasePayloads: ErasePayloads;
  /** An outcome that this process does not record is made again by another one. */
  keepTryingWhileDraining: KeepTrying;
  metrics: Pick<DispatcherMetrics, 'observe' | 'countCancelled' | 'countHeld'>;
  counts: AttemptCounter;
  announce: AnnounceAttempt;
  logger: Logger;
  nowMs: () => number;
}

interface SettleDeliveryDeps extends SettleDeps {
  recordAttempts: RecordAttempts;
  records: Pick<RecordLog, 'publish'>;
  failedTopic: string;
  keepTrying: KeepTrying;
  schedule: RetrySchedule;
}

interface SettleResendDeps extends SettleDeps {
  marks: Pick<ResendMarks, 'finish'>;
}

/**
 * Nobody waits for a settlement, and a batch costs more than its items (docs/performance.md, Tried). An attempt whose
 * response came within the linger before a crash is sent twice: a test compares the pages that say so with it.
 */
export const SETTLE_BATCH = { maxItems: 200, lingerMs: 100, maxInFlight: 2 };

/**
 * Settle: stores the outcome of an attempt, then publishes what follows from it. Only then may
 * the offset of its record be committed. A crash in between repeats the step, and ids make the repeat
 * harmless.
 */
export function createSettleDelivery(deps: SettleDeliveryDeps): Settle {
  const batcher = createBatcher<Settled, undefined>({
    ...SETTLE_BATCH,
    run: async (batch) => {
      await settleBatch(deps, batch);
      return batch.map(() => undefined);
    },
  });
  return batcher.add;
}

async function settleBatch(deps: SettleDeliveryDeps, batch: Settled[]): Promise<void> {
  const deliveries = batch.map((settled) => toDelivery(deps, settled));
  const stored = batch.filter(({ due }) => due.isStored).map(({ due }) => due.deliveryId);
  const storedIds = new Set(stored);
  await makeRoomForCounts(deps);
  const unfinished = await deps.keepTryingWhileDraining(
    'record outcomes',
    () => deps.recordAttempts(deliveries, storedIds),
    () => ({ size: batch.length }),
  );
  // A recorded outcome is counted, also when a stop ends the next steps: the record is then read as recorded.
  for (const settled of batch) report(deps, settled);
  await eraseDelivered(deps, batch);
  const failures = batch.flatMap((settled, index) =>
    settled.kind === 'attempted' && unfinished.has(requiredAt(deliveries, index, 'delivery').id)
      ? [failureRecord(deps, settled)]
      : [],
  );
  await deps.keepTrying(
    'publish failures',
    () => deps.records.publish(failures),
    () => ({ size: failures.length }),
  );
}

/**
 * Every recorded attempt is counted, because companies pay for it. So an attempt is recorded only while there is memory
 * for its count, which MongoDB takes along with the outcomes.
 */
function makeRoomForCounts({ counts, keepTryingWhileDraining }: SettleDeps): Promise<void> {
  return keepTryingWhileDraining('write counts of attempts', counts.makeRoom);
}

function toDelivery({ schedule, nowMs }: SettleDeliveryDeps, settled: Settled): SettledDelivery {
  switch (settled.kind) {
    case 'attempted':
      return settleAttempt(settled.due, settled.attempt, settled.cancelReason, schedule);
    case 'cancelled':
      return settleCancelled(settled.due, settled.reason, nowMs());
    case 'waiting':
      return settled.untilMs === null
        ? settleWaiting(settled.due, 'hold', nowMs())
        : settleWaiting(settled.due, 'time', nowMs(), settled.untilMs);
  }
}

/** An attempt that succeeded may have delivered its delivery. */
function eraseDelivered({ erasePayloads }: SettleDeps, batch: readonly Settled[]): Promise<void> {
  const successes = batch.filter(
    (settled) => settled.kind === 'attempted' && settled.attempt.outcome === 'success',
  );
  return erasePayloads(successes.map(({ due }) => due));
}

function failureRecord(
  { failedTopic }: Pick<SettleDeliveryDeps, 'failedTopic'>,
  { due, attempt, headers }: SettledAttempt,
): OutgoingRecord {
  const value = encodeDeliveryFailed({ ...endedAttempt(due, attempt), ending: attempt.ending });
  return { topic: failedTopic, key: due.webhookId, value, headers };
}

function endedAttempt(due: DueAttempt, attempt: Attempt) {
  const { number: attemptNumber, outcome, statusCode } = attempt;
  return { ...refOf(due), attemptNumber, endedAtMs: endedAtMs(attempt), outcome, statusCode };
}

/**
 * Returns the function that publishes the record by which the retry service disables a webhook. An outcome is recorded
 * only after it, so that a crash in between repeats it.
 */
export function createPublishDisabling(
  deps: Pick<SettleDeliveryDeps, 'records' | 'failedTopic' | 'keepTryingWhileDraining'>,
): (made: DisablingAttempt) => Promise<void> {
  return async ({ due, attempt, webhook, reason }) => {
    const disabling = { ...endedAttempt(due, attempt), reason, changedAtMs: webhook.updatedAtMs };
    const value = encodeDisabling(disabling);
    const record = { topic: deps.failedTopic, key: due.webhookId, value };
    await deps.keepTryingWhileDraining('publish the end of a webhook', () =>
      deps.records.publish([record]),
    );
  };
}

function report(deps: SettleDeps, settled: Settled): void {
  if (settled.kind === 'waiting') {
    if (settled.untilMs === null) deps.metrics.countHeld();
    return;
  }
  if (settled.kind === 'attempted' && !settled.isRecorded) reportAttempt(deps, settled);
  const reason = settled.kind === 'attempted' ? settled.cancelReason : settled.reason;
  if (reason === null) return;
  deps.metrics.countCancelled();
  deps.logger.info({ ...logFieldsOf(settled.due), reason }, 'delivery cancelled');
}

/** Counts and announces an attempt, and writes its log line. */
function reportAttempt(
  { metrics, counts, announce, logger }: SettleDeps,
  settled: SettledAttempt,
): void {
  const { due, attempt, appId, payloadBytes, headers } = settled;
  const { number, outcome, failureReason, statusCode, durationMs } = attempt;
  metrics.observe(due, attempt);
  const { companyId, webhookId } = due;
  counts.add({ companyId, webhookId, appId }, { attempt, payloadBytes });
  announce(settled);
  const level = outcome === 'success' ? 'debug' : 'info';
  if (!logger.isLevelEnabled(level)) return;
  const ids = { requestId: headers.requestId, ...logFieldsOf(due), attempt: number };
  logger[level]({ ...ids, outcome, failureReason, statusCode, durationMs }, 'attempt made');
}

/**
 * Records the one attempt of a resend and ends its mark. Nothing follows from a failure: a resend is
 * not retried (docs/contract.md C11.1).
 */
export function createSettleResend(deps: SettleResendDeps): Settle {
  const batcher = createBatcher<Settled, undefined>({
    ...SETTLE_BATCH,
    run: async (batch) => {
      const finished = batch.map((settled) => finishedOf(deps, settled));
      await makeRoomForCounts(deps);
      await deps.keepTryingWhileDraining(
        'record resends',
        () => deps.marks.finish(finished),
        () => ({ size: batch.length }),
      );
      for (const settled of batch) reportResend(deps, settled);
      await eraseDelivered(deps, batch);
      return batch.map(() => undefined);
    },
  });
  return batcher.add;
}

function finishedOf({ nowMs }: SettleResendDeps, settled: Settled): FinishedResend {
  const { deliveryId, attemptNumber } = settled.due;
  const attempt = settled.kind === 'attempted' ? settled.attempt : null;
  return { deliveryId, attemptNumber, attempt, atMs: nowMs() };
}

function reportResend(deps: SettleResendDeps, settled: Settled): void {
  if (settled.kind === 'attempted') reportAttempt(deps, settled);
  else if (settled.kind === 'cancelled') {
    deps.logger.info({ ...logFieldsOf(settled.due), reason: settled.reason }, 'resend not made');
  }
}

/**
 * Stores a batch. Resolves with the ids of the deliveries whose failure is to be published: those that
 * are still pending after the attempt just recorded. Repeating a batch changes nothing. `storedIds`: those of the batch
 * that have a document, as far as their records know.
 */
export type RecordAttempts = (
  batch: readonly SettledDelivery[],
  storedIds?: ReadonlySet<string>,
) => Promise<Set<string>>;

const NONE: ReadonlySet<string> = new Set();

/**
 * A first attempt is one insert. A delivery that is stored already (a later attempt, one that has waited, or a record that
 * is read again after a crash) takes a conditional update. So does one that begins to wait, before its first attempt or a
 * later one. Only when an update does not match are the stored states read. Inserts that find a document are
 * expensive, because MongoDB repeats their batch one by one.
 */
export function createRecordAttempts(store: DeliveryStore): RecordAttempts {
  return async (batch, storedIds = NONE) => {
    const isNew = (settled: SettledDelivery): boolean =>
      mayBeNew(settled) && !storedIds.has(settled.id);
    const first = batch.filter(isNew);
    const stored = first.length > 0 ? await store.insertAll(first) : new Set<string>();
    const inserted = first.filter(({ id }) => !stored.has(id));
    const others = batch.filter((settled) => !isNew(settled) || stored.has(settled.id));
    const updated = others.length > 0 ? await updateStored(store, others) : [];
    return new Set([...inserted, ...updated].filter(isFailure).map(({ id }) => id));
  };
}

/** It usually has no document yet: after its first attempt, or cancelled or waiting without one. */
function mayBeNew({ attempt, wait }: SettledDelivery): boolean {
  return (attempt?.number ?? wait?.attemptNumber ?? 1) === 1;
}

function isFailure({ status, attempt }: SettledDelivery): boolean {
  return attempt !== null && !isFinal(status);
}

/** Resolves with those whose attempt is the last one recorded now. */
async function updateStored(
  store: DeliveryStore,
  settled: readonly SettledDelivery[],
): Promise<SettledDelivery[]> {
  const cancelled = settled.flatMap(({ id, reason, attempt, updatedAtMs: atMs }) =>
    reason && attempt === null ? [{ id, reason, atMs }] : [],
  );
  if (cancelled.length > 0) await store.cancelPending(cancelled);
  const waiting = settled.filter(({ wait }) => wait !== undefined);
  if (waiting.length > 0) await setWaiting(store, waiting);
  const attempted = settled.filter(({ attempt }) => attempt !== null);
  if (attempted.length === 0) return [];
  const { appended } = await store.appendAttempts(attempted);
  return appended === attempted.length ? attempted : updateUnmatched(store, attempted);
}

/** One that did not match has gone on or has ended, or is not stored any more. */
async function setWaiting(
  store: DeliveryStore,
  waiting: readonly SettledDelivery[],
): Promise<void> {
  const { matched } = await store.setWaiting(waiting);
  if (matched === waiting.length) return;
  const states = await store.statesOf(waiting.map(({ id }) => id));
  const missing = waiting.filter(({ id }) => !states.has(id));
  if (missing.length > 0) await store.insertAll(missing);
}

/** Some attempts did not match: their delivery has gone on, has ended, or is not stored any more. */
async function updateUnmatched(
  store: DeliveryStore,
  attempted: readonly SettledDelivery[],
): Promise<SettledDelivery[]> {
  const states = await store.statesOf(attempted.map(({ id }) => id));
  const missing = attempted.filter(({ id }) => !states.has(id));
  if (missing.length > 0) await store.insertAll(missing);
  const cancelled = attempted.filter(({ id }) => states.get(id)?.status === 'cancelled');
  if (cancelled.length > 0) await store.appendToCancelled(cancelled);
  const repeatedSuccess = attempted.filter((settled) => {
    const state = states.get(settled.id);
    const isSuccess = settled.status === 'delivered';
    return isSuccess && state !== undefined && isLastRecorded(settled, state);
  });
  if (repeatedSuccess.length > 0) await store.replaceFailures(repeatedSuccess);
  return attempted.filter((settled) => {
    const state = states.get(settled.id);
    return state === undefined || isLastRecorded(settled, state);
  });
}

/**
 * True while the delivery is pending after the attempt of this number, which this process or another
 * recorded: its failure may not have been published.
 */
function isLastRecorded({ attempt }: SettledDelivery, state: DeliveryState): boolean {
  return state.status === 'pending' && state.attemptCount === attempt?.number;
}

/**
 * Makes sure that the payloads of the messages of these attempts are erased, if their app wants that, once everything
 * is delivered. To be called after an outcome is recorded, and before the offset of its record is committed.
 */
export type ErasePayloads = (dues: readonly DueAttempt[]) => Promise<void>;

interface ErasePayloadsDeps {
  erasure: Pick<PayloadErasure, 'eraseOrNote' | 'note'>;
  keepTryingWhileDraining: KeepTrying;
  monotonicMs: () => number;
}

/**
 * A note covers the successes of its message that are recorded within this time, which is far below CHECK_AFTER_MS: the
 * message is looked at after them.
 */
const COVERED_MS = 1_000;
/** 1 MB of ids. What does not fit is noted again. */
const MAX_COVERED = 10_000;

/** Asks the store only for messages of apps that want it, and each second once for a message with many targets. */
export function createErasePayloads(deps: ErasePayloadsDeps): ErasePayloads {
  /** When the note of a message was begun, the earliest first. */
  const coveredSinceMs = new Map<string, number>();
  const isCovered = (messageId: string, nowMs: number): boolean =>
    nowMs - (coveredSinceMs.get(messageId) ?? -Infinity) < COVERED_MS;
  const cover = (messageId: string, sinceMs: number): void => {
    coveredSinceMs.delete(messageId);
    coveredSinceMs.set(messageId, sinceMs);
    if (coveredSinceMs.size <= MAX_COVERED) return;
    for (const earliest of coveredSinceMs.keys()) {
      coveredSinceMs.delete(earliest);
      return;
    }
  };
  return async (dues) => {
    const nowMs = deps.monotonicMs();
    const wanted = dues.filter((due) => due.erasesPayload && !isCovered(due.messageId, nowMs));
    if (wanted.length === 0) return;
    const ids = wanted.map(({ messageId }) => messageId);
    await deps.keepTryingWhileDraining(
      'erase payloads',
      async () => {
        const sinceMs = deps.monotonicMs();
        // To look at a message with 10,000 targets again takes MongoDB longer than to write its note.
        const known = new Set(ids.filter((id) => coveredSinceMs.has(id)));
        const refs = new Map(wanted.map((due) => [due.messageId, due]));
        await deps.erasure.note([...refs.values()].filter(({ messageId }) => known.has(messageId)));
        const others = wanted.filter(({ messageId }) => !known.has(messageId));
        const noted = others.length === 0 ? [] : await deps.erasure.eraseOrNote(others);
        for (const id of [...known, ...noted]) cover(id, sinceMs);
      },
      () => ({ size: wanted.length }),
    );
  };
}
