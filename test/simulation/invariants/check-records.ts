import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { decodeEndedAttempt } from '@posthorn/domain/records/records.ts';
import { decodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import { TURN_AT_HEADER } from '@posthorn/domain/records/record-headers.ts';
import type { LogRecord, OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { attemptIdIn, increment, type Observations } from './observations.ts';
import type { ConsumerObserver } from '../consumer/consumer-state.ts';
import { keyOf, type Group, type SimulatedKafka } from '../infrastructure/simulated-kafka.ts';
import type { SimulatedProcess } from '../infrastructure/simulated-process.ts';
import { DELAY_TOPICS, TOPICS, type World } from '../world/world.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** The delays after attempts 1 to 6 (docs/contract.md C10.4), not received from the code. */
export const PROMISED_DELAYS_MS = [
  ...[5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS],
  ...[2 * HOUR_MS, 5 * HOUR_MS, 10 * HOUR_MS],
];
const PROMISED_TOPICS = ['5s', '5m', '30m', '2h', '5h', '10h'].map((delay) => `retry.${delay}`);

export interface RecordChecker extends ConsumerObserver {
  onAppend: (process: SimulatedProcess, record: OutgoingRecord) => void;
}

interface State {
  world: World;
  kafka: SimulatedKafka;
  observations: Observations;
  /** Process and record → when the process first received the record. */
  receivedMs: Map<string, number>;
  /** Content of a parked or deferred record → when its delay has passed in virtual time. */
  dueMs: Map<string, number>;
  /** Group and topic partition → offsets of the records that a member has handled. */
  handled: Map<string, Set<number>>;
}

/** Returns an observer that checks every record that is produced and every offset that is committed. */
export function createRecordChecker(
  world: World,
  kafka: SimulatedKafka,
  observations: Observations,
): RecordChecker {
  const state: State = {
    world,
    kafka,
    observations,
    receivedMs: new Map(),
    dueMs: new Map(),
    handled: new Map(),
  };
  return {
    onAppend: (process, record) => {
      checkRecord(state, process, record);
    },
    onHandled(group, record, process) {
      const received = receivedKey(process, record);
      if (!state.receivedMs.has(received)) state.receivedMs.set(received, world.time.nowMs());
      handledOffsets(state, group, record);
    },
    onDone: (group, record) => handledOffsets(state, group, record).add(record.offset),
    onCommit: (group, commit) => {
      checkCommit(state, group, commit);
    },
    onInterrupted(records) {
      for (const record of records) {
        const attemptId = attemptIdIn(record);
        if (attemptId !== null) increment(observations.interruptions, attemptId);
      }
    },
  };
}

function checkRecord(state: State, process: SimulatedProcess, record: OutgoingRecord): void {
  const { topic, value, headers = {} } = record;
  const attemptId = attemptIdIn(record);
  if (attemptId !== null) increment(state.observations.copies, attemptId);
  const { deadLetters, exhaustedDeliveries } = TOPICS;
  if ([deadLetters, exhaustedDeliveries].includes(topic)) checkDeadLetter(state, record);
  if (topic === TOPICS.retryDue) checkRelease(state, process, decodeRetryDue(value), record);
  const step = PROMISED_TOPICS.indexOf(topic);
  const delayMs = PROMISED_DELAYS_MS[step] ?? deferralMsOf(topic);
  const content = value.toString();
  if (delayMs !== undefined && !state.dueMs.has(content)) {
    state.dueMs.set(content, state.world.time.nowMs() + delayMs);
  }
  if (step >= 0 && headers[TURN_AT_HEADER] === undefined) {
    checkParking(state, decodeRetryDue(value), step);
  }
}

/** The delay of a deferral topic, in milliseconds; undefined for any other topic. */
function deferralMsOf(topic: string): number | undefined {
  const found = DELAY_TOPICS.get(topic);
  return found?.kind === 'deferred' ? found.delayMs : undefined;
}

/**
 * A record is released early if the clock of the releasing process has not shown the due time since it received the
 * record, except if that clock was set back and the delay has passed in virtual time. It must not be released at all if,
 * before the process received it, its delivery was final or its webhook was deleted or disabled.
 */
function checkRelease(
  { world, receivedMs, dueMs, observations }: State,
  process: SimulatedProcess,
  { trigger, dueAtMs, deliveryId, webhookId, attemptNumber, orderingKey }: DueAttempt,
  record: OutgoingRecord,
): void {
  if (trigger === 'resend') return;
  // What comes behind an ordering key is decided by the dispatcher, which looks it up.
  if (orderingKey !== undefined && record.headers?.[TURN_AT_HEADER] !== undefined) return;
  if (process.name.startsWith('releaser')) {
    if ((observations.waited.get(deliveryId) ?? -1) < attemptNumber - 1) {
      world.reportViolation(
        `attempt ${attemptNumber} of ${deliveryId} was released without a wait`,
      );
    }
    return;
  }
  const sinceMs = receivedMs.get(receivedKey(process, record)) ?? Infinity;
  const earlyMs = dueAtMs - process.latestClockSince(sinceMs);
  const name = `attempt ${attemptNumber} of ${deliveryId}`;
  const hasDelayPassed = world.time.nowMs() >= (dueMs.get(record.value.toString()) ?? Infinity);
  if (earlyMs > 0 && !hasDelayPassed)
    world.reportViolation(`${name} was released ${earlyMs} ms early`);
  const wasBefore = (since: Map<string, number>, id: string): boolean =>
    (since.get(id) ?? Infinity) < sinceMs;
  if (wasBefore(observations.finalSinceMs, deliveryId)) {
    world.reportViolation(`${name} was released although its delivery was final`);
  }
  // Before the first attempt is recorded there is no document to cancel; then the dispatcher cancels the delivery.
  const isRecorded = wasBefore(observations.recordedSinceMs, deliveryId);
  if (isRecorded && wasBefore(observations.inactiveSinceMs, webhookId)) {
    world.reportViolation(`${name} was released although its webhook was deleted or disabled`);
  }
}

/** A parked attempt is due exactly the promised delay after the end of the previous one, on the topic of that delay. */
function checkParking({ world, observations }: State, due: DueAttempt, step: number): void {
  const { deliveryId, attemptNumber, dueAtMs } = due;
  const before = observations.requests.get(attemptIdOf(deliveryId, attemptNumber - 1)) ?? [];
  const promised = PROMISED_DELAYS_MS[attemptNumber - 2] ?? NaN;
  const isOnTime = before.some(
    (request) => request.startedAtMs + request.durationMs + promised === dueAtMs,
  );
  if (isOnTime && step === attemptNumber - 2) return;
  const ends = before
    .map((request) => dueAtMs - request.startedAtMs - request.durationMs)
    .join(', ');
  world.reportViolation(
    `attempt ${attemptNumber} of ${deliveryId} is due ${ends || 'without an attempt before it'} ms ` +
      `after attempt ${attemptNumber - 1} instead of ${promised}, on ${PROMISED_TOPICS[step] ?? ''}`,
  );
}

function checkDeadLetter(
  { world, observations }: State,
  { topic, value, headers }: OutgoingRecord,
): void {
  if (topic !== TOPICS.exhaustedDeliveries || headers?.reason !== 'schedule_exhausted') {
    world.reportViolation(
      `unexpected dead letter: ${headers?.reason ?? ''} ${headers?.detail ?? ''}`,
    );
    return;
  }
  const { messageId, webhookId } = decodeEndedAttempt(value);
  observations.deadLetters.add(deliveryIdOf(messageId, webhookId));
}

function checkCommit(
  state: State,
  group: Group,
  { offset: toOffset, ...topicPartition }: { topic: string; partition: number; offset: number },
): void {
  const { world, kafka } = state;
  const fromOffset = group.committed.get(keyOf(topicPartition)) ?? 0;
  const where = `${group.id} committed ${keyOf(topicPartition)} at ${toOffset}`;
  if (toOffset < fromOffset) world.reportViolation(`${where}, behind ${fromOffset}`);
  const handled = handledOffsets(state, group, topicPartition);
  const skipped = kafka
    .partitionAt(topicPartition)
    .records.find(
      ({ offset }) => offset >= fromOffset && offset < toOffset && !handled.has(offset),
    );
  if (skipped) world.reportViolation(`${where}, past the unhandled record ${skipped.offset}`);
  if (toOffset > kafka.partitionAt(topicPartition).endOffset)
    world.reportViolation(`${where}, past the end of the partition`);
}

function handledOffsets(
  { handled }: State,
  group: Group,
  topicPartition: { topic: string; partition: number },
): Set<number> {
  const key = `${group.id} ${keyOf(topicPartition)}`;
  const found = handled.get(key) ?? new Set();
  handled.set(key, found);
  return found;
}

function receivedKey({ name }: SimulatedProcess, { value }: Pick<LogRecord, 'value'>): string {
  return `${name} ${value.toString('latin1')}`;
}
