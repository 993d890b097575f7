import { randomUUID } from 'node:crypto';
import type { Message } from '@posthorn/domain/message.ts';
import { createdRecords } from '@posthorn/platform/records/created-records.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { inWorkers } from '../../load/loops.ts';
import { rounded } from '../../measure/figures.ts';
import { untilArrived } from '../../measure/phase.ts';
import type { Bench } from '../../scenario.ts';
import { deleteRecords, openStores } from '../../stack/open-stores.ts';

/** A backlog of records for the dispatcher, and how much of it was delivered. */
export type BacklogRun = Awaited<ReturnType<typeof measureBacklog>>;

interface BacklogSpec {
  endpoints: number;
  /** How many are published at least. */
  records: number;
  /** Time limit for publishing and delivering together. */
  seconds: number;
}

/** Longer than a new consumer takes to join its group, and than a deferral of a minute. */
const QUIET_MS = 90_000;
/** The time for the records in the memory of the dispatcher when the remaining ones are deleted. */
const LEFTOVER = { quietMs: 5_000, totalMs: 30_000 };
const RECORDS_AT_ONCE = 5_000;
const PAGES_AT_ONCE = 2;

/**
 * Stores messages to every webhook of an app, and publishes a record with the payload for each webhook, as a gateway does and
 * faster than the dispatcher delivers them; then waits until it has caught up. The messages are stored because an attempt that
 * waits drops its payload and loads it again.
 */
export async function measureBacklog(bench: Bench, spec: BacklogSpec) {
  const endpoints = Math.min(spec.endpoints, MAX_BACKLOG_ENDPOINTS);
  const tracker = createBacklogTracker(endpoints);
  const targets = await bench.openEndpoints({ count: endpoints, note: tracker.note });
  const stores = await openStores(bench.stack.addresses);
  const { records, messages, kafka, topics } = stores;
  const name = `a backlog of ${spec.records} records`;
  bench.log(`Measuring: ${name}, for ${spec.seconds} s at most`);
  const startedAtMs = performance.now();
  const since = (): number => rounded((performance.now() - startedAtMs) / 1_000);
  const signal = AbortSignal.any([bench.signal, AbortSignal.timeout(spec.seconds * 1_000)]);
  const newMessage = messageOf(bench.stack.credentials.companyId, targets);
  const size = Math.max(1, Math.floor(RECORDS_AT_ONCE / endpoints));
  try {
    const count = Math.ceil(spec.records / endpoints);
    await inWorkers(count, { size, atOnce: PAGES_AT_ONCE, signal }, async (_, length) => {
      const page = Array.from({ length }, newMessage);
      await messages.insertAll(page);
      tracker.expect(page.map(({ id }) => id));
      await records.publish(page.flatMap((each) => createdRecords(topics.messageCreated, each)));
    });
    const [putSeconds, waitingAtMost] = [since(), tracker.missing()];
    bench.log(`Published in ${putSeconds} s; ${waitingAtMost} records wait for the dispatcher`);
    await untilArrived(tracker.missing, { quietMs: QUIET_MS, totalMs: Infinity, signal });
    const seconds = since();
    const left = tracker.missing();
    const drained = tracker.expected() - left;
    const run = {
      name,
      records: tracker.expected(),
      /** How many were waiting when the last one had been published. */
      waitingAtMost,
      putSeconds,
      drained,
      duplicates: tracker.duplicates(),
      /** From the first record published to the last one delivered, or to the time limit. */
      seconds,
      deliveredPerSecond: rounded(drained / seconds),
      /** No record was delivered for so long that the wait ended before the time limit. */
      hasStalled: left > 0 && !signal.aborted,
    };
    if (left > 0 && !bench.signal.aborted) {
      // Otherwise they would delay the messages of the later phases.
      bench.log(`${left} records are left when the time is over; they are deleted from the topic`);
      await deleteRecords(kafka, topics.messageCreated);
      await untilArrived(tracker.missing, { ...LEFTOVER, signal: bench.signal });
    }
    return run;
  } finally {
    await stores.close();
  }
}

const PAYLOAD = JSON.stringify({ text: 'x'.repeat(200) });

const messageOf =
  (companyId: string, { appId, webhookIds }: { appId: string; webhookIds: readonly string[] }) =>
  (): Message => ({
    id: systemIds('msg'),
    companyId,
    appId,
    payload: PAYLOAD,
    targets: [...webhookIds],
    // No gateway has this name: the sweep does not republish these messages.
    publisherId: 'bench',
    eventType: null,
    disabledTargets: new Set<string>(),
    idempotency: null,
    requestId: randomUUID(),
    createdAtMs: Date.now(),
  });

/** One bit for each endpoint of a message. */
export const MAX_BACKLOG_ENDPOINTS = 32;

/** Tracks which records of a backlog have arrived, with some bytes per message instead of an object per record. */
export function createBacklogTracker(endpoints: number) {
  const arrivedBits = new Map<string, number>();
  let arrived = 0;
  let duplicates = 0;
  return {
    /** Adds messages that will go to every endpoint, one record each. */
    expect(messageIds: readonly string[]): void {
      for (const id of messageIds) arrivedBits.set(id, 0);
    },
    note: (messageId: string, endpoint: number): void => {
      const bits = arrivedBits.get(messageId);
      if (bits === undefined) return;
      const bit = 1 << endpoint;
      if ((bits & bit) !== 0) {
        duplicates += 1;
        return;
      }
      arrivedBits.set(messageId, bits | bit);
      arrived += 1;
    },
    expected: () => arrivedBits.size * endpoints,
    missing: () => arrivedBits.size * endpoints - arrived,
    /** Arrivals beyond the first of a record. */
    duplicates: () => duplicates,
  };
}
