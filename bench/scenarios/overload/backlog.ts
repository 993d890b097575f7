import { randomUUID } from 'node:crypto';
import type { Message } from '@posthorn/domain/message.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createdRecords } from '@posthorn/platform/records/created-records.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { rounded } from '../../measure/figures.ts';
import { untilArrived } from '../../measure/phase.ts';
import type { Bench } from '../../scenario.ts';
import { deleteRecords, openStores } from '../../stack/open-stores.ts';
import type { Owner } from '../../load/failed-deliveries.ts';

/** A backlog of records for the dispatcher, and how much of it was delivered. */
export interface BacklogRun {
  name: string;
  records: number;
  /** How many were waiting when the last one had been published. */
  waitingAtMost: number;
  putSeconds: number;
  drained: number;
  duplicates: number;
  /** From the first record published to the last one delivered, or to the time limit. */
  seconds: number;
  deliveredPerSecond: number;
  /** No record was delivered for so long that the wait ended before the time limit. */
  hasStalled: boolean;
}

interface BacklogSpec {
  endpoints: number;
  records: number;
  /** Time limit for publishing and delivering together. */
  seconds: number;
}

/** Longer than a new consumer takes to join its group, and than a deferral of a minute. */
const QUIET_MS = 90_000;
/** The time for the records in the memory of the dispatcher when the remaining ones are deleted. */
const LEFTOVER = { quietMs: 5_000, totalMs: 30_000 };

/** Publishes records faster than the dispatcher delivers them, and waits until it has caught up. */
export async function measureBacklog(bench: Bench, spec: BacklogSpec): Promise<BacklogRun> {
  const endpoints = Math.min(spec.endpoints, MAX_BACKLOG_ENDPOINTS);
  const tracker = createBacklogTracker(endpoints);
  const targets = await bench.openTargets({ count: endpoints, note: tracker.note });
  const stores = await openStores(bench.stack.addresses);
  const name = `a backlog of ${spec.records} records`;
  bench.log(`Measuring: ${name}, for ${spec.seconds} s at most`);
  const startedAtMs = performance.now();
  const since = (): number => (performance.now() - startedAtMs) / 1_000;
  const cap = AbortSignal.timeout(spec.seconds * 1_000);
  const signal = AbortSignal.any([bench.signal, cap]);
  try {
    const { companyId } = bench.stack.credentials;
    const deps = { ...stores, createdTopic: stores.topics.messageCreated, tracker, signal };
    await putBacklog(deps, { companyId, ...targets }, spec.records);
    const [putSeconds, waitingAtMost] = [rounded(since()), tracker.missing()];
    bench.log(`Published in ${putSeconds} s; ${waitingAtMost} records wait for the dispatcher`);
    await untilArrived(tracker.missing, { quietMs: QUIET_MS, totalMs: Infinity, signal });
    const seconds = rounded(since());
    const run = { name, putSeconds, waitingAtMost, seconds, ...figuresOf(tracker, seconds) };
    if (tracker.missing() > 0)
      await discardRemaining(bench, tracker, () => deleteRecords(stores.kafka, deps.createdTopic));
    return { ...run, hasStalled: run.drained < run.records && !signal.aborted };
  } finally {
    await stores.close();
  }
}

type Tracker = ReturnType<typeof createBacklogTracker>;

function figuresOf(tracker: Tracker, seconds: number) {
  const records = tracker.expected();
  const drained = records - tracker.missing();
  const deliveredPerSecond = rounded(drained / seconds);
  return { records, drained, duplicates: tracker.duplicates(), deliveredPerSecond };
}

/** Otherwise the remaining records would delay the messages of the later phases. */
async function discardRemaining(
  { log, signal }: Bench,
  tracker: Tracker,
  drop: () => Promise<void>,
) {
  if (signal.aborted) return;
  log(
    `${tracker.missing()} records are left when the time is over; they are deleted from the topic`,
  );
  await drop();
  await untilArrived(tracker.missing, { ...LEFTOVER, signal });
}

interface BacklogDeps {
  records: Pick<RecordLog, 'publish'>;
  messages: Pick<MessageStore, 'insertAll'>;
  createdTopic: string;
  tracker: BacklogTracker;
  /** Ends the load early. */
  signal: AbortSignal;
}

const PAYLOAD = JSON.stringify({ text: 'x'.repeat(200) });
/** No gateway has this name: the sweep does not republish these messages. */
const PUBLISHER = 'bench';
const RECORDS_AT_ONCE = 5_000;
const PAGES_AT_ONCE = 2;

/**
 * Stores messages to every webhook of an app and publishes a record with the payload for each webhook,
 * as a gateway does. They are stored because an attempt that waits drops its payload and loads it again.
 * Publishes at least this many records.
 */
export async function putBacklog(deps: BacklogDeps, owner: Owner, records: number): Promise<void> {
  const pageSize = Math.max(1, Math.floor(RECORDS_AT_ONCE / owner.webhookIds.length));
  let rest = Math.ceil(records / owner.webhookIds.length);
  const worker = async (): Promise<void> => {
    while (rest > 0 && !deps.signal.aborted) {
      const size = Math.min(pageSize, rest);
      rest -= size;
      await putPage(deps, newMessages(owner, size));
    }
  };
  await Promise.all(Array.from({ length: PAGES_AT_ONCE }, worker));
}

async function putPage(
  { records, messages, createdTopic, tracker }: BacklogDeps,
  page: Message[],
): Promise<void> {
  await messages.insertAll(page);
  tracker.expect(page.map(({ id }) => id));
  await records.publish(page.flatMap((message) => createdRecords(createdTopic, message)));
}

function newMessages({ companyId, appId, webhookIds }: Owner, count: number): Message[] {
  const createdAtMs = Date.now();
  return Array.from({ length: count }, () => ({
    id: systemIds('msg'),
    companyId,
    appId,
    payload: PAYLOAD,
    targets: [...webhookIds],
    publisherId: PUBLISHER,
    eventType: null,
    disabledTargets: new Set<string>(),
    idempotency: null,
    requestId: randomUUID(),
    createdAtMs,
  }));
}

/**
 * Tracks which records of a backlog have arrived, with some bytes per message instead of an object per
 * record.
 */
interface BacklogTracker {
  /** Adds messages that will go to every endpoint, one record each. */
  expect: (messageIds: readonly string[]) => void;
  note: (messageId: string, endpoint: number) => void;
  expected: () => number;
  missing: () => number;
  /** Arrivals beyond the first of a record. */
  duplicates: () => number;
}

/** One bit for each endpoint of a message. */
export const MAX_BACKLOG_ENDPOINTS = 32;

export function createBacklogTracker(endpoints: number): BacklogTracker {
  if (endpoints > MAX_BACKLOG_ENDPOINTS)
    throw new Error(`at most ${MAX_BACKLOG_ENDPOINTS} endpoints`);
  const arrivedBits = new Map<string, number>();
  let arrived = 0;
  let duplicates = 0;
  return {
    expect(messageIds) {
      for (const id of messageIds) arrivedBits.set(id, 0);
    },
    note(messageId, endpoint) {
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
    duplicates: () => duplicates,
  };
}
