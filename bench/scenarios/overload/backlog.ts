import { createBacklogTracker, MAX_BACKLOG_ENDPOINTS } from '../../load/backlog-tracker.ts';
import { putBacklog } from '../../load/put-backlog.ts';
import { rounded } from '../../figures/percentiles.ts';
import { untilArrived } from '../../measure/until-arrived.ts';
import type { Bench } from '../../scenario.ts';
import { deleteRecords } from '../../stack/delete-records.ts';
import { openStores } from '../../stack/open-stores.ts';

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

export interface BacklogSpec {
  endpoints: number;
  records: number;
  /** Time limit for publishing and delivering together. */
  seconds: number;
}

/** Longer than a new consumer takes to join its group, and than a deferral of a minute. */
const QUIET_MS = 90_000;
/** The time for what the dispatcher holds in memory when the rest is deleted. */
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

/** Otherwise the rest would delay the messages of the later phases. */
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
