import type { Message } from '@posthorn/domain/message/message.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import type { LeaseStore } from '@posthorn/platform/mongo/leases/leases.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import type { PublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { RetryMetrics } from '../retry-metrics.ts';
import { publishMissing } from './publish-missing.ts';
import { nextPageLimit, type Backlog, type Observation } from './when-taken-over.ts';

export interface SweepUnpublishedDeps {
  /** Names this process as the holder of the lease. */
  holder: string;
  createdTopic: string;
  leases: LeaseStore;
  publishers: Pick<PublisherStore, 'list' | 'takeOver' | 'markSwept' | 'forget'>;
  messages: Pick<MessageStore, 'pageOf' | 'boundedPageOf'>;
  /** How many messages, of all publishers, a page reads at most. */
  maxRead: number;
  deliveries: Pick<DeliveryStore, 'statesOf'>;
  records: Pick<RecordLog, 'publish'>;
  metrics: Pick<RetryMetrics, 'swept'>;
  /** Resolves after this time, or when the sweep is to stop. */
  rest: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Milliseconds of the monotonic clock. */
  monotonicMs: () => number;
  logger: Logger;
}

/** What one process knows of the publishers. */
export interface Work extends SweepUnpublishedDeps {
  /** By publisher: when the oldest of its messages that is to be published here was accepted. */
  oldestAtMs: Map<string, number>;
  /** By publisher; only of those that were listed in the last round. */
  seen: Map<string, Observation>;
  /** The publisher whose page was the latest. */
  latestId: string;
  /** Aborted when the sweep is to stop. */
  stopping: AbortSignal;
}

export const LEASE = 'sweeper';
/** Publishers are listed again after this time, so that one that dies during a long sweep gets its turn. */
const ROUND_MS = 10_000;
const FORGET_AFTER_MS = 60_000;
/** With slices of 500 records 2,000 a second: less than one dispatcher delivers. */
const SLICE_PAUSE_MS = 250;
/** Records of a page: the publisher whose turn is next waits for so many. */
const PAGE_RECORDS = 10_000;

/**
 * Sweeps one page of each backlog in turn, so that a large one does not delay the others. Starts after the
 * publisher whose turn was the last: one that takes the time of a whole round, and fails, must not be the
 * only one in every round.
 */
export async function sweepInTurns(work: Work, own: readonly Backlog[]): Promise<void> {
  const untilMs = work.monotonicMs() + ROUND_MS;
  const isLater = ({ publisherId }: Backlog): boolean => publisherId > work.latestId;
  let left = [...own.filter(isLater), ...own.filter((each) => !isLater(each))];
  while (left.length > 0) {
    const unfinished: Backlog[] = [];
    for (const backlog of left) {
      if (work.stopping.aborted || work.monotonicMs() > untilMs) return;
      if (!(await work.leases.hold(LEASE, work.holder))) return;
      work.latestId = backlog.publisherId;
      const next = await tryPage(work, backlog);
      if (next) unfinished.push(next);
    }
    left = unfinished;
  }
}

/** Returns how far it came; null when nothing is left, or when a publisher that cannot be swept must not stop the others. */
async function tryPage(work: Work, backlog: Backlog): Promise<Backlog | null> {
  try {
    return await sweepPage(work, backlog);
  } catch (error) {
    const { publisherId } = backlog;
    work.logger.warn({ err: error, publisherId }, 'failed to sweep a publisher, trying again');
    return null;
  }
}

async function sweepPage(work: Work, backlog: Backlog): Promise<Backlog | null> {
  const { messages, publishers, maxRead } = work;
  const { publisherId, limit, isComplete } = backlog;
  const read = await messages.boundedPageOf({ ...backlog, maxRead });
  const page = cutPage(read.messages);
  const last = page.at(-1);
  const readTo = last && page.length < read.messages.length ? last.id : read.readTo;
  if (last) {
    const early = work.seen.get(publisherId)?.publishedEarly;
    const left = page.filter(({ id }) => !early?.has(id));
    await publishPage(work, publisherId, left);
    if (!isComplete) early?.add(left.map(({ id }) => id));
    await publishers.markSwept(publisherId, last.id);
  }
  noteRead(work, backlog, readTo);
  if (readTo !== null) {
    const nextLimit = last ? nextPageLimit(page) : limit;
    return { publisherId, afterId: readTo, limit: nextLimit, isComplete };
  }
  // Else another scan follows, from the watermark.
  if (isComplete) await publishers.forget(publisherId, FORGET_AFTER_MS);
  return null;
}

/** Returns the first messages that have PAGE_RECORDS together, and one at least. */
function cutPage(messages: readonly Message[]): readonly Message[] {
  let records = 0;
  const end = messages.findIndex(({ targets }) => (records += targets.length) > PAGE_RECORDS);
  return end === -1 ? messages : messages.slice(0, Math.max(1, end));
}

function noteRead(
  { seen, monotonicMs }: Work,
  { publisherId, isComplete }: Backlog,
  readTo: string | null,
): void {
  const observation = seen.get(publisherId);
  if (!observation) return;
  observation.readTo = isComplete ? readTo : null;
  if (readTo !== null) return;
  observation.emptyAtMs = monotonicMs();
  observation.isScannedAgain ||= isComplete;
}

/** Publishes the records of these messages that no delivery shows in Kafka. */
export async function publishPage(
  work: Work,
  publisherId: string,
  page: Parameters<typeof publishMissing>[1],
): Promise<void> {
  const { createdTopic, deliveries, records, metrics, logger, oldestAtMs } = work;
  const { leases, holder, rest, stopping } = work;
  await publishMissing(
    {
      createdTopic,
      deliveries,
      records,
      async beforeSlice() {
        await rest(SLICE_PAUSE_MS, stopping);
        if (stopping.aborted || !(await leases.hold(LEASE, holder)))
          throw new Error('the sweep stops, or another process has its lease');
      },
      onMissing: ({ createdAtMs }) => oldestAtMs.set(publisherId, createdAtMs),
      onPublished(count) {
        oldestAtMs.delete(publisherId);
        metrics.swept.inc(count);
        const text = 'published messages that their gateway did not publish';
        logger.info({ publisherId, records: count }, text);
      },
    },
    page,
  );
}
