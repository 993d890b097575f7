import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { encodeDeliveryFailed } from '@posthorn/domain/records/records.ts';
import type { DeliveryRef } from '@posthorn/domain/message/delivery.ts';
import type { OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { createOpenLoopSchedule } from './open-loop-schedule.ts';
import type { Retry, RetryTracker } from './retry-tracker.ts';

export interface FailureDeps {
  records: Pick<RecordLog, 'publish'>;
  failedTopic: string;
  tracker: RetryTracker;
  delayMs: number;
  /** Ends the load early. */
  signal: AbortSignal;
}

const TICK_MS = 5;
/** What becomes due meanwhile goes into the next request, as in the dispatcher. */
const SENDS_AT_ONCE = 2;

/**
 * Publishes failed first attempts at a fixed rate, whatever Kafka does. Their end times are evenly
 * spread. Resolves with the start time when all of them are acknowledged or refused.
 */
export async function failAtRate(
  deps: FailureDeps,
  deliveries: readonly DeliveryRef[],
  ratePerSecond: number,
): Promise<{ startedAtMs: number }> {
  const schedule = createOpenLoopSchedule(ratePerSecond, deliveries.length / ratePerSecond);
  const startedAtMs = Date.now();
  const clockAtStartMs = performance.now();
  const endedAtMs = (n: number): number => Math.floor(startedAtMs + schedule.intendedMs(n));
  const sending = new Set<Promise<void>>();
  for (let sent = 0; sent < schedule.total && !deps.signal.aborted;) {
    const due = schedule.dueCount(performance.now() - clockAtStartMs);
    if (due > sent && sending.size < SENDS_AT_ONCE) {
      const failures = deliveries
        .slice(sent, due)
        .map((ref, index) => failureOf(deps, ref, endedAtMs(sent + index)));
      const send = publish(deps.records, failures).finally(() => sending.delete(send));
      sending.add(send);
      sent = due;
    }
    await wait(TICK_MS);
  }
  await Promise.all(sending);
  return { startedAtMs };
}

interface Failure {
  record: OutgoingRecord;
  retry: Retry;
}

function failureOf(
  { failedTopic, tracker, delayMs }: FailureDeps,
  ref: DeliveryRef,
  endedAtMs: number,
): Failure {
  const outcome = { attemptNumber: 1, endedAtMs, outcome: 'http_5xx', statusCode: 500 };
  return {
    retry: tracker.expect(ref.messageId, { endedAtMs, dueAtMs: endedAtMs + delayMs }),
    record: {
      topic: failedTopic,
      key: ref.webhookId,
      value: encodeDeliveryFailed({ ...ref, ...outcome }),
      headers: { requestId: randomUUID() },
    },
  };
}

/**
 * A failure that Kafka refused has no storing time, and is missing at the end unless it was stored
 * after all.
 */
async function publish(
  records: FailureDeps['records'],
  failures: readonly Failure[],
): Promise<void> {
  try {
    await records.publish(failures.map(({ record }) => record));
  } catch {
    return;
  }
  const storedAtMs = Date.now();
  for (const { retry } of failures) retry.storedAtMs = storedAtMs;
}
