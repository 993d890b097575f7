import { awaitsAttempt } from '@posthorn/domain/delivery.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import {
  decodeRetryDue,
  readRecord,
  UnreadableRecordError,
  type DueAttempt,
} from '@posthorn/domain/records.ts';
import { createBatcher } from '@posthorn/platform/batcher.ts';
import type { DeadLetters } from '@posthorn/platform/dead-letters.ts';
import type { LogRecord, OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { keepTrying } from '@posthorn/platform/keep-trying.ts';
import type { DeliveryState, DeliveryStore } from '@posthorn/platform/mongo/deliveries.ts';
import { dueAtOf, holdUntilDue, isPlausible } from './hold-until-due.ts';
import type { RetryMetrics } from './retry-metrics.ts';

export interface ReleaseDeps {
  retryDueTopic: string;
  log: RecordLog;
  deliveries: Pick<DeliveryStore, 'statesOf'>;
  deadLetters: DeadLetters;
  metrics: RetryMetrics;
  nowMs: () => number;
}

interface Parked {
  record: LogRecord;
  due: DueAttempt;
}

const BATCH = { maxItems: 500, lingerMs: 2, maxInFlight: 2 };

/**
 * Step 5, release: when a parked record is due it goes to `retry-due`, unless its delivery has moved
 * on meanwhile. Resolves when Kafka has it; only then may its offset be committed.
 */
export function createReleaseParked(deps: ReleaseDeps): (record: LogRecord) => Promise<void> {
  const release = createBatcher<Parked, undefined>({
    ...BATCH,
    run: async (batch) => {
      await releaseBatch(deps, batch);
      return batch.map(() => undefined);
    },
  });
  return async (record) => {
    const due = readRecord(() => read(record, deps.nowMs()));
    if (due instanceof UnreadableRecordError) {
      await keepTrying(() => deps.deadLetters.put(record, 'unreadable_record', due.message));
      return;
    }
    await holdUntilDue(due.dueAtMs, deps.nowMs);
    await release.add({ record, due });
  };
}

function read(record: LogRecord, nowMs: number): DueAttempt {
  const due = decodeRetryDue(record.value);
  if (dueAtOf(record) !== due.dueAtMs) {
    throw new UnreadableRecordError('header due-at and dueAtMs differ');
  }
  if (!isPlausible(due.dueAtMs, nowMs)) throw new UnreadableRecordError('due too far ahead');
  return due;
}

async function releaseBatch(deps: ReleaseDeps, batch: readonly Parked[]): Promise<void> {
  const ids = batch.map(({ due }) => deliveryIdOf(due.messageId, due.webhookId));
  const states = await keepTrying(() => deps.deliveries.statesOf(ids));
  const taken = new Set<string>();
  const released = batch.filter(({ due }, index) => {
    const id = ids[index] ?? '';
    const identity = `${id}/${due.attemptNumber}`;
    // A crash may have parked one failure twice.
    if (taken.has(identity) || !isWanted(due, states.get(id))) return false;
    return taken.add(identity);
  });
  await keepTrying(() => deps.log.publish(released.map((parked) => toRetryDue(deps, parked))));
  for (const { due } of released) deps.metrics.observeLateness(deps.nowMs() - due.dueAtMs);
}

/** Whether a resend is still asked for is decided by its mark, when it is made. */
function isWanted(due: DueAttempt, state: DeliveryState | undefined): boolean {
  return due.trigger === 'resend' || awaitsAttempt(state, due.attemptNumber);
}

function toRetryDue({ retryDueTopic }: ReleaseDeps, { record }: Parked): OutgoingRecord {
  const { key, value, headers } = record;
  return { topic: retryDueTopic, key, value, headers };
}
