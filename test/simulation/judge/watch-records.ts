import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import {
  decodeDeliveryFailed,
  decodeRetryDue,
  TURN_AT_HEADER,
  type DueAttempt,
} from '@posthorn/domain/records/records.ts';
import type { LogRecord, OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { attemptIdIn, count, type Evidence } from './evidence.ts';
import type { ReaderWatch } from './reader-state.ts';
import { keyOf, type Group, type SimulatedKafka } from '../parts/simulated-kafka.ts';
import type { SimulatedProcess } from '../parts/simulated-process.ts';
import { DELAY_TOPICS, TOPICS, type World } from '../run/world.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** The document's numbers (spec, Events, rule 4): what follows attempts 1 to 6. Not taken from the code. */
export const PROMISED_DELAYS_MS = [
  ...[5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS],
  ...[2 * HOUR_MS, 5 * HOUR_MS, 10 * HOUR_MS],
];
const PROMISED_TOPICS = ['5s', '5m', '30m', '2h', '5h', '10h'].map((delay) => `retry.${delay}`);

export interface RecordWatch extends ReaderWatch {
  onAppend: (process: SimulatedProcess, record: OutgoingRecord) => void;
}

interface State {
  world: World;
  kafka: SimulatedKafka;
  evidence: Evidence;
  /** Process and record → since when it is in the hands of that process. */
  takenMs: Map<string, number>;
  /** Content of a parked or deferred record → when its delay has really passed, whatever any clock says. */
  waitedMs: Map<string, number>;
  /** Group and place → offsets that some member has worked off. */
  done: Map<string, Set<number>>;
}

/** Judges what is written to Kafka, and what is committed. */
export function watchRecords(world: World, kafka: SimulatedKafka, evidence: Evidence): RecordWatch {
  const state: State = {
    world,
    kafka,
    evidence,
    takenMs: new Map(),
    waitedMs: new Map(),
    done: new Map(),
  };
  return {
    onAppend: (process, record) => {
      judgeRecord(state, process, record);
    },
    onHandled(group, record, process) {
      const taken = takenKey(process, record);
      if (!state.takenMs.has(taken)) state.takenMs.set(taken, world.time.nowMs());
      doneIn(state, group, record);
    },
    onDone: (group, record) => doneIn(state, group, record).add(record.offset),
    onCommit: (group, commit) => {
      judgeCommit(state, group, commit);
    },
    onInterrupted(records) {
      for (const record of records) {
        const attemptId = attemptIdIn(record);
        if (attemptId !== null) count(evidence.interruptions, attemptId);
      }
    },
  };
}

function judgeRecord(state: State, process: SimulatedProcess, record: OutgoingRecord): void {
  const { topic, value, headers = {} } = record;
  const attemptId = attemptIdIn(record);
  if (attemptId !== null) count(state.evidence.copies, attemptId);
  if (topic === TOPICS.deadLetters) judgeDeadLetter(state, record);
  if (topic === TOPICS.retryDue) judgeRelease(state, process, decodeRetryDue(value), record);
  const step = PROMISED_TOPICS.indexOf(topic);
  const delayMs = PROMISED_DELAYS_MS[step] ?? deferralMsOf(topic);
  const content = value.toString();
  if (delayMs !== undefined && !state.waitedMs.has(content)) {
    state.waitedMs.set(content, state.world.time.nowMs() + delayMs);
  }
  if (step >= 0 && headers[TURN_AT_HEADER] === undefined) {
    judgeParking(state, decodeRetryDue(value), step);
  }
}

/** The delay of a deferral topic, in milliseconds; undefined for any other topic. */
function deferralMsOf(topic: string): number | undefined {
  const found = DELAY_TOPICS.get(topic);
  return found?.kind === 'deferred' ? found.delayMs : undefined;
}

/**
 * Never early by the clock of whoever released it, at any time while it had the record, unless that
 * clock was set back and the delay has really passed; and not at all what was final, or had nowhere
 * to go, before it had the record.
 */
function judgeRelease(
  { world, takenMs, waitedMs, evidence }: State,
  process: SimulatedProcess,
  { trigger, dueAtMs, deliveryId, webhookId, attemptNumber }: DueAttempt,
  record: OutgoingRecord,
): void {
  if (trigger === 'resend') return;
  const sinceMs = takenMs.get(takenKey(process, record)) ?? Infinity;
  const earlyMs = dueAtMs - process.latestShownSince(sinceMs);
  const name = `attempt ${attemptNumber} of ${deliveryId}`;
  const hasWaited = world.time.nowMs() >= (waitedMs.get(record.value.toString()) ?? Infinity);
  if (earlyMs > 0 && !hasWaited) world.fail(`${name} was released ${earlyMs} ms early`);
  const wasSo = (since: Map<string, number>, id: string): boolean =>
    (since.get(id) ?? Infinity) < sinceMs;
  if (wasSo(evidence.finalSinceMs, deliveryId)) {
    world.fail(`${name} was released though its delivery was final`);
  }
  // Before anything is recorded there is no document to cancel; the dispatcher does it then.
  const isRecorded = wasSo(evidence.recordedSinceMs, deliveryId);
  if (isRecorded && wasSo(evidence.closedSinceMs, webhookId)) {
    world.fail(`${name} was released though its webhook was closed`);
  }
}

/** Due exactly its delay after the end of the attempt before, on the topic of that delay. */
function judgeParking({ world, evidence }: State, due: DueAttempt, step: number): void {
  const { deliveryId, attemptNumber, dueAtMs } = due;
  const before = evidence.made.get(attemptIdOf(deliveryId, attemptNumber - 1)) ?? [];
  const promised = PROMISED_DELAYS_MS[attemptNumber - 2] ?? NaN;
  const isOnTime = before.some((made) => made.startedAtMs + made.durationMs + promised === dueAtMs);
  if (isOnTime && step === attemptNumber - 2) return;
  const ends = before.map((made) => dueAtMs - made.startedAtMs - made.durationMs).join(', ');
  world.fail(
    `attempt ${attemptNumber} of ${deliveryId} is due ${ends || 'without an attempt before it'} ms ` +
      `after attempt ${attemptNumber - 1} instead of ${promised}, on ${PROMISED_TOPICS[step] ?? ''}`,
  );
}

function judgeDeadLetter({ world, evidence }: State, { value, headers }: OutgoingRecord): void {
  if (headers?.reason !== 'schedule_exhausted') {
    world.fail(`a dead letter: ${headers?.reason ?? ''} ${headers?.detail ?? ''}`);
    return;
  }
  const { messageId, webhookId } = decodeDeliveryFailed(value);
  evidence.deadLetters.add(deliveryIdOf(messageId, webhookId));
}

function judgeCommit(
  state: State,
  group: Group,
  { offset: toOffset, ...place }: { topic: string; partition: number; offset: number },
): void {
  const { world, kafka } = state;
  const fromOffset = group.committed.get(keyOf(place)) ?? 0;
  const where = `${group.id} committed ${keyOf(place)} at ${toOffset}`;
  if (toOffset < fromOffset) world.fail(`${where}, back from ${fromOffset}`);
  const done = doneIn(state, group, place);
  const passed = kafka
    .partitionAt(place)
    .records.find(({ offset }) => offset >= fromOffset && offset < toOffset && !done.has(offset));
  if (passed) world.fail(`${where}, past ${passed.offset}, which nobody has worked off`);
  if (toOffset > kafka.partitionAt(place).endOffset) world.fail(`${where}, past the end`);
}

function doneIn(
  { done }: State,
  group: Group,
  place: { topic: string; partition: number },
): Set<number> {
  const key = `${group.id} ${keyOf(place)}`;
  const found = done.get(key) ?? new Set();
  done.set(key, found);
  return found;
}

function takenKey({ name }: SimulatedProcess, { value }: Pick<LogRecord, 'value'>): string {
  return `${name} ${value.toString('latin1')}`;
}
