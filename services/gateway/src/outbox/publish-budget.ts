import type {
  ReadingPositions,
  ReportedTimes,
} from '@posthorn/platform/redis/reading-positions.ts';

/**
 * How many records of one company may be in Kafka unread, so that the records of all others are read within about a
 * second (docs/decisions/0048-a-company-publishes-as-fast-as-it-is-read.md). Kafka is one queue for all companies, and
 * a record behind 4 million records of another company waits for half an hour.
 */
export interface PublishBudget {
  /** How many records the company may publish now; none or less when it has to wait. */
  roomOf: (companyId: string) => number;
  /** Counts records that are published now, by the ids of their webhooks. */
  noteWritten: (companyId: string, webhookIds: readonly string[]) => void;
  /** The partitions with records that may be unread, whether or not a dispatcher reports them. */
  partitions: () => ReadonlySet<number>;
  /** True when the positions have to be read: records were written since the last read, or are unread. */
  isReadDue: () => boolean;
  /** Applies the reports of the dispatchers; null when Redis is away. */
  noteRead: (positions: ReportedTimes | null) => void;
  usedBytes: () => number;
}

interface BudgetDeps {
  partitionOf: (webhookId: string) => number;
  /**
   * How far the clock of a partition's broker, which gives the records their times, is ahead of `monotonicMs` at least;
   * -Infinity while that is not known.
   */
  brokerAheadMs: (partition: number) => number;
  monotonicMs: () => number;
}

/** Records of one company in one partition, written within SLICE_MS. */
interface Written {
  partition: number;
  /** When the first of them was written, by the monotonic clock. */
  atMs: number;
  records: number;
}

interface Company {
  /** Records that may be unread, in the order in which they were written. */
  written: Written[];
  /** The last entry of each partition in `written` since the positions were read last. */
  latest: Map<number, Written>;
  /** The records of `written`, without those in partitions that nobody reports. */
  unread: number;
  /** How many of its records are read per second, a mean in which the last two seconds count most. */
  readPerSecond: number;
  /** How long its oldest unread record has waited, a mean that rises three times as fast as it falls. */
  waitedMs: number;
  /** How many of its records may be unread. */
  window: number;
}

/**
 * A company may have so many unread records of each gateway while they do not wait: a fifth of a second of one
 * dispatcher.
 */
export const FLOOR_RECORDS = 500;
/** However long they wait: a turn of the publish queue. */
const LEAST_RECORDS = 20;
/** How long the records of a company are to wait in Kafka. */
export const WAIT_MS = 750;
/** A company whose records are read at once may publish at most this many times as fast as they were read. */
const GROWTH = 1.5;
/** The time constant of the means. Without them the window follows its own effect, and everything comes in waves. */
const MEAN_MS = 2_000;
/** A record that is unread for longer counts as read: its dispatcher cannot report, or a partition has no reader. */
const FORGET_AFTER_MS = 60_000;
/** Records of this time in one partition are counted together, so some count as read this much too early. */
const SLICE_MS = 50;
/** No more is counted: about 5 MB. They are gone through five times a second, in 2 to 8 ms. */
const MAX_WRITTEN = 50_000;
/** An entry, and its place in the list and in `latest`. */
const WRITTEN_BYTES = 100;

/**
 * A company may have as many unread records as are read of it in WAIT_MS, and FLOOR_RECORDS; fewer when they wait longer. So its
 * records wait for about that time whatever the installation delivers, and however many gateways publish for it: each
 * of them measures what is read of its own records. The floor makes the windows of companies that all wait approach
 * each other. A dispatcher always finds unread records of a company that waits, so a company alone gets all that the
 * installation delivers.
 *
 * Records in a partition that nobody reports are not counted. Its dispatcher has lost Redis or is
 * gone; and the messages of a company wait in one row, so one such partition of twelve would stop them all.
 */
export function createPublishBudget(deps: BudgetDeps): PublishBudget {
  const { partitionOf, brokerAheadMs, monotonicMs } = deps;
  const companies = new Map<string, Company>();
  /** Partitions that nobody reported when they were read last. */
  const unreported = new Set<number>();
  let count = 0;
  let isMeasured = true;
  let isWritten = false;
  let readAtMs = monotonicMs();

  return {
    roomOf(companyId) {
      const company = companies.get(companyId);
      if (!isMeasured) return Infinity;
      return company ? company.window - company.unread : FLOOR_RECORDS;
    },
    noteWritten(companyId, webhookIds) {
      isWritten = true;
      if (!isMeasured || count > MAX_WRITTEN) return;
      const company = companies.get(companyId) ?? newCompany();
      companies.set(companyId, company);
      const atMs = monotonicMs();
      const before = company.written.length;
      for (const webhookId of webhookIds) {
        const partition = partitionOf(webhookId);
        addWritten(company, partition, atMs);
        if (!unreported.has(partition)) company.unread += 1;
      }
      count += company.written.length - before;
    },
    partitions: () => partitionsOf(companies.values()),
    isReadDue: () => isWritten || companies.size > 0,
    noteRead(positions) {
      const atMs = monotonicMs();
      const sinceMs = Math.max(1, atMs - readAtMs);
      [isMeasured, isWritten, readAtMs, count] = [positions !== null, false, atMs, 0];
      if (positions === null) {
        companies.clear();
        return;
      }
      keepUnreported(unreported, positions);
      for (const [companyId, company] of companies) {
        measure(company, positions, { atMs, sinceMs, brokerAheadMs });
        company.unread = unreadOf(company, unreported);
        if (company.written.length === 0 && company.readPerSecond < 1) companies.delete(companyId);
        else count += company.written.length;
      }
    },
    usedBytes: () => count * WRITTEN_BYTES,
  };
}

const newCompany = (): Company => ({
  written: [],
  latest: new Map(),
  unread: 0,
  readPerSecond: 0,
  waitedMs: 0,
  window: FLOOR_RECORDS,
});

function partitionsOf(companies: Iterable<Company>): Set<number> {
  const partitions = new Set<number>();
  for (const { written } of companies)
    for (const { partition } of written) partitions.add(partition);
  return partitions;
}

function keepUnreported(unreported: Set<number>, positions: ReportedTimes): void {
  for (const [partition, time] of positions) {
    if (time === null) unreported.add(partition);
    else unreported.delete(partition);
  }
}

function addWritten({ written, latest }: Company, partition: number, atMs: number): void {
  const last = latest.get(partition);
  if (last && atMs - last.atMs < SLICE_MS) {
    last.records += 1;
    return;
  }
  const added = { partition, atMs, records: 1 };
  written.push(added);
  latest.set(partition, added);
}

interface Measurement extends Pick<BudgetDeps, 'brokerAheadMs'> {
  atMs: number;
  /** Since the one before. */
  sinceMs: number;
}

/**
 * By the clock of this process, the records of a gateway that was 300 ms ahead of a broker counted as unread until later ones
 * were read, and a company alone got 8 messages a second.
 */
function measure(
  company: Company,
  positions: ReportedTimes,
  { atMs, sinceMs, brokerAheadMs }: Measurement,
): void {
  let read = 0;
  company.latest.clear();
  company.written = company.written.filter((each) => {
    const time = positions.get(each.partition);
    if (time === null) return false;
    // Undefined: written since the positions were requested.
    const isRead = time !== undefined && each.atMs + brokerAheadMs(each.partition) <= time;
    if (isRead) read += each.records;
    return !isRead && atMs - each.atMs < FORGET_AFTER_MS;
  });
  const weight = 1 - Math.exp(-sinceMs / MEAN_MS);
  company.readPerSecond += weight * ((read * 1_000) / sinceMs - company.readPerSecond);
  const [oldest] = company.written;
  const longerMs = (oldest ? atMs - oldest.atMs : 0) - company.waitedMs;
  company.waitedMs += longerMs * (longerMs > 0 ? Math.min(1, 3 * weight) : weight);
  company.window = windowOf(company.readPerSecond, company.waitedMs);
}

function unreadOf({ written }: Company, unreported: ReadonlySet<number>): number {
  let unread = 0;
  for (const { partition, records } of written) if (!unreported.has(partition)) unread += records;
  return unread;
}

/** Returns how many records of a company may be unread when so many are read per second, and wait for so long. */
export function windowOf(readPerSecond: number, waitedMs: number): number {
  const correction = WAIT_MS / Math.max(1, waitedMs);
  const ofReading = (readPerSecond * WAIT_MS * Math.min(GROWTH, correction)) / 1_000;
  return Math.round(Math.max(LEAST_RECORDS, FLOOR_RECORDS * Math.min(1, correction) + ofReading));
}

/**
 * What the process does for one record of a message, in milliseconds: it is built, signed, sorted into its partition,
 * encoded and sent, and the delivery is part of the response. Beside `npm run bench -- greedy` it took 0.02 to 0.03 ms.
 */
export const MS_PER_RECORD = 0.025;

/** Records of a message between two waits: 2.5 ms of CPU time. A message to fewer webhooks never waits. */
export const SLICE_RECORDS = 100;

/** How a message to many webhooks is published where other companies use the gateway. */
export interface PublishPace {
  /** How long a company waits after so many records of a message, in milliseconds; 0 when it may go on. */
  waitMs: (companyId: string, records: number) => number;
  /** Calls the function once, after this many milliseconds. */
  after: (ms: number, run: () => void) => void;
}

/** No message waits. */
export const NO_PACE: PublishPace = { waitMs: () => 0, after: () => undefined };

interface PaceDeps {
  /** How long a company pauses after so much work, in milliseconds. */
  pauseMs: (companyId: string, workMs: number) => number;
  after: PublishPace['after'];
}

export function createPublishPace({ pauseMs, after }: PaceDeps): PublishPace {
  return { after, waitMs: (companyId, records) => pauseMs(companyId, records * MS_PER_RECORD) };
}

interface FollowReadersDeps {
  budget: Pick<PublishBudget, 'isReadDue' | 'partitions' | 'noteRead'>;
  positions: Pick<ReadingPositions, 'read'>;
  releaseWaiting: () => void;
  nowMs: () => number;
}

/** A late reply does not end the budgets: in this time one gateway could publish 80,000 records. */
const WITHOUT_REPLY_MS = 2_000;

/** Returns a function that reads how far the dispatchers are, and goes on with the companies that have room again. */
export function createFollowReaders(deps: FollowReadersDeps): () => Promise<void> {
  const { budget, positions, releaseWaiting, nowMs } = deps;
  let repliedAtMs = nowMs();
  return async () => {
    if (!budget.isReadDue()) {
      repliedAtMs = nowMs();
      return;
    }
    try {
      budget.noteRead(await positions.read(budget.partitions()));
      repliedAtMs = nowMs();
    } catch {
      // Redis is away, which its client has logged.
      if (nowMs() - repliedAtMs >= WITHOUT_REPLY_MS) budget.noteRead(null);
    }
    releaseWaiting();
  };
}
