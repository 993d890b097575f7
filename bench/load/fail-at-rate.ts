import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { type DeliveryRef, encodeDeliveryFailed } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { createOpenLoopSchedule } from './open-loop-schedule.ts';
import type { Retry, RetryBook } from './retry-book.ts';

export interface FailureDeps {
  log: Pick<RecordLog, 'publish'>;
  failedTopic: string;
  book: RetryBook;
  delayMs: number;
  /** Ends the loop early. */
  signal: AbortSignal;
}

const TICK_MS = 5;
/** What is due meanwhile goes into the next request, as with the dispatcher. */
const SENDS_AT_ONCE = 2;

/**
 * First attempts that fail at a fixed rate, whatever Kafka does: each has ended at its own
 * millisecond, evenly spread. Resolves when all of them are acknowledged or refused, with the start.
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
      const send = publish(deps.log, failures).finally(() => sending.delete(send));
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
  { failedTopic, book, delayMs }: FailureDeps,
  ref: DeliveryRef,
  endedAtMs: number,
): Failure {
  const outcome = { attemptNumber: 1, endedAtMs, outcome: 'http_5xx', statusCode: 500 };
  return {
    retry: book.expect(ref.messageId, { endedAtMs, dueAtMs: endedAtMs + delayMs }),
    record: {
      topic: failedTopic,
      key: ref.webhookId,
      value: encodeDeliveryFailed({ ...ref, ...outcome }),
      headers: { requestId: randomUUID() },
    },
  };
}

/** What Kafka refused keeps no time of storing, and is missing at the end unless it was stored after all. */
async function publish(log: FailureDeps['log'], failures: readonly Failure[]): Promise<void> {
  try {
    await log.publish(failures.map(({ record }) => record));
  } catch {
    return;
  }
  const storedAtMs = Date.now();
  for (const { retry } of failures) retry.storedAtMs = storedAtMs;
}
