import { createBacklogBook, MAX_BACKLOG_ENDPOINTS } from '../load/backlog-book.ts';
import { putBacklog } from '../load/put-backlog.ts';
import { rounded } from '../measure/percentiles.ts';
import { untilArrived } from '../measure/until-arrived.ts';
import type { Bench } from '../scenario.ts';
import { dropRest } from '../stack/drop-rest.ts';
import { openStores } from '../stack/open-stores.ts';

/** Records in front of the dispatcher, and how far it got with them. */
export interface BacklogRun {
  name: string;
  records: number;
  /** How many were waiting when the last one had been put. */
  waitingAtMost: number;
  putSeconds: number;
  drained: number;
  duplicates: number;
  /** From the first record put to the last one delivered, or to the cap. */
  seconds: number;
  deliveredPerSecond: number;
  /** No record was delivered for so long that the wait was given up before the cap. */
  hasStalled: boolean;
}

export interface BacklogSpec {
  endpoints: number;
  records: number;
  /** Cap on putting and delivering together. */
  seconds: number;
}

/** Longer than a new consumer takes to join its group, and than the wait of what was deferred for a minute. */
const QUIET_MS = 90_000;
/** For what the dispatcher holds in memory when the rest is deleted. */
const LEFTOVER = { quietMs: 5_000, totalMs: 30_000 };

/** Puts records faster than the dispatcher delivers them, and waits until it has caught up. */
export async function measureBacklog(bench: Bench, spec: BacklogSpec): Promise<BacklogRun> {
  const endpoints = Math.min(spec.endpoints, MAX_BACKLOG_ENDPOINTS);
  const book = createBacklogBook(endpoints);
  const targets = await bench.openTargets({ count: endpoints, note: book.note });
  const stores = await openStores(bench.stack.addresses);
  const name = `a backlog of ${spec.records} records`;
  bench.log(`Measuring: ${name}, for ${spec.seconds} s at most`);
  const startedAtMs = performance.now();
  const since = (): number => (performance.now() - startedAtMs) / 1_000;
  const cap = AbortSignal.timeout(spec.seconds * 1_000);
  const signal = AbortSignal.any([bench.signal, cap]);
  try {
    const { companyId } = bench.stack.credentials;
    const deps = { ...stores, createdTopic: stores.topics.messageCreated, book, signal };
    await putBacklog(deps, { companyId, ...targets }, spec.records);
    const [putSeconds, waitingAtMost] = [rounded(since()), book.missing()];
    bench.log(`Put in ${putSeconds} s; ${waitingAtMost} records wait for the dispatcher`);
    await untilArrived(book.missing, { quietMs: QUIET_MS, totalMs: Infinity, signal });
    const seconds = rounded(since());
    const run = { name, putSeconds, waitingAtMost, seconds, ...figuresOf(book, seconds) };
    if (book.missing() > 0)
      await giveUp(bench, book, () => dropRest(stores.kafka, deps.createdTopic));
    return { ...run, hasStalled: run.drained < run.records && !signal.aborted };
  } finally {
    await stores.close();
  }
}

type Book = ReturnType<typeof createBacklogBook>;

function figuresOf(book: Book, seconds: number) {
  const records = book.expected();
  const drained = records - book.missing();
  const deliveredPerSecond = rounded(drained / seconds);
  return { records, drained, duplicates: book.duplicates(), deliveredPerSecond };
}

/** What is left would stand in front of the messages of the later phases. */
async function giveUp({ log, signal }: Bench, book: Book, drop: () => Promise<void>) {
  if (signal.aborted) return;
  log(`${book.missing()} records are left at the end of the time; they are deleted from the topic`);
  await drop();
  await untilArrived(book.missing, { ...LEFTOVER, signal });
}
