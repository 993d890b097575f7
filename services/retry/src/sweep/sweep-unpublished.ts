import { createLoop, type Loop } from '@posthorn/platform/async/loop.ts';
import { withTimeout } from '@posthorn/platform/async/with-timeout.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import type { LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import type {
  KnownPublisher,
  PublisherStore,
} from '@posthorn/platform/mongo/messages/publishers.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { RetryMetrics } from '../retry-metrics.ts';
import { publishMissing } from './publish-missing.ts';
import {
  backlogOf,
  nextPageLimit,
  observe,
  stepFor,
  type Backlog,
  type Observation,
} from './when-taken-over.ts';

export interface SweepUnpublishedDeps {
  /** Names this process as the holder of the lease. */
  holder: string;
  createdTopic: string;
  leases: LeaseStore;
  publishers: Pick<PublisherStore, 'list' | 'takeOver' | 'markSwept' | 'forget'>;
  messages: Pick<MessageStore, 'pageOf'>;
  deliveries: Pick<DeliveryStore, 'statesOf'>;
  records: Pick<RecordLog, 'publish'>;
  metrics: Pick<RetryMetrics, 'swept'>;
  /** Milliseconds of the monotonic clock. */
  monotonicMs: () => number;
  logger: Logger;
}

export interface UnpublishedSweep extends Loop {
  /**
   * When the oldest message that was found unpublished was accepted, in milliseconds since 1970; null
   * when there is none.
   */
  oldestAtMs: () => number | null;
}

interface Work extends SweepUnpublishedDeps {
  /** By publisher: when the oldest of its messages that is to be published here was accepted. */
  oldestAtMs: Map<string, number>;
  /** By publisher; only of those that were listed in the last round. */
  seen: Map<string, Observation>;
  /** The publisher whose page was the latest. */
  latestId: string;
  stopping: AbortController;
}

const LEASE = 'sweeper';
const EVERY_MS = 2_000;
/** Publishers are listed again after this time, so that one that dies during a long sweep gets its turn. */
const ROUND_MS = 10_000;
const FORGET_AFTER_MS = 60_000;
/**
 * What is under way may end. A send to a Kafka that is away would take longer: the next holder of the lease
 * publishes the same page, and the dispatcher looks up what is late.
 */
const STOP_MS = 2_000;

/**
 * Publishes what a gateway stored and did not publish: everything after its watermark that has no
 * delivery yet. It takes over a publisher first, so that only one process publishes its messages
 * (docs/decisions/0023-one-owner-of-a-backlog.md). It publishes first and stores its progress
 * afterwards, so that a crash repeats a step and never skips one. A tick does nothing while another
 * process holds the lease.
 */
export function createUnpublishedSweep(deps: SweepUnpublishedDeps): UnpublishedSweep {
  const work: Work = {
    ...deps,
    oldestAtMs: new Map(),
    seen: new Map(),
    latestId: '',
    stopping: new AbortController(),
  };
  const loop = createLoop({
    name: 'sweep of unpublished messages',
    everyMs: EVERY_MS,
    run: () => sweepRound(work),
    logger: deps.logger,
  });
  return {
    start: loop.start,
    tick: loop.tick,
    oldestAtMs: () => (work.oldestAtMs.size > 0 ? Math.min(...work.oldestAtMs.values()) : null),
    async stop() {
      work.stopping.abort();
      await withTimeout(loop.stop(), STOP_MS).catch(() => undefined);
      await deps.leases.release(LEASE, deps.holder).catch(() => undefined);
    },
  };
}

/** Dead publishers come first: nobody else publishes for them. */
async function sweepRound(work: Work): Promise<void> {
  const isHeld = await work.leases.hold(LEASE, work.holder);
  const listed = isHeld ? await work.publishers.list() : [];
  observeAll(work, listed);
  const own: Backlog[] = [];
  const stuck: KnownPublisher[] = [];
  for (const publisher of listed) {
    switch (stepOf(work, publisher)) {
      case 'sweep':
        own.push(backlogOf(publisher));
        break;
      case 'take_over_silent':
        if (await takeOver(work, publisher, 'heartbeat')) own.push(backlogOf(publisher));
        break;
      case 'take_over_stuck':
        // Its gateway notices within a second. It is swept when its heartbeat is old.
        await takeOver(work, publisher, 'watermark');
        break;
      case 'help':
        stuck.push(publisher);
        break;
      case 'leave':
        if (!publisher.isTakenOver) work.oldestAtMs.delete(publisher.id);
    }
  }
  await sweepInTurns(work, own);
  for (const publisher of stuck) await help(work, publisher);
}

function observeAll({ seen, oldestAtMs, monotonicMs }: Work, listed: KnownPublisher[]): void {
  const nowMs = monotonicMs();
  const before = new Map(seen);
  seen.clear();
  for (const publisher of listed) {
    seen.set(publisher.id, observe(publisher, before.get(publisher.id), nowMs));
  }
  for (const id of oldestAtMs.keys()) if (!seen.has(id)) oldestAtMs.delete(id);
}

function stepOf({ seen, monotonicMs }: Work, publisher: KnownPublisher) {
  const observation = seen.get(publisher.id);
  return observation ? stepFor(publisher, observation, monotonicMs()) : 'leave';
}

async function takeOver(
  { publishers, logger }: Work,
  publisher: KnownPublisher,
  unchanged: 'heartbeat' | 'watermark',
): Promise<boolean> {
  const { id: publisherId, silentMs, behindMs } = publisher;
  const isOwn = await publishers.takeOver(publisher, unchanged);
  const reason = unchanged === 'heartbeat' ? 'it is silent' : 'it makes no progress';
  if (isOwn) logger.warn({ publisherId, silentMs, behindMs, reason }, 'took over a publisher');
  return isOwn;
}

/**
 * One page of each in turn, so that a large backlog does not delay the others. Begins behind the one whose
 * turn was the last: one that takes the time of a round, and fails, must not be the only one each time.
 */
async function sweepInTurns(work: Work, own: readonly Backlog[]): Promise<void> {
  const untilMs = work.monotonicMs() + ROUND_MS;
  const isLater = ({ publisherId }: Backlog): boolean => publisherId > work.latestId;
  let left = [...own.filter(isLater), ...own.filter((each) => !isLater(each))];
  while (left.length > 0) {
    const unfinished: Backlog[] = [];
    for (const backlog of left) {
      if (work.stopping.signal.aborted || work.monotonicMs() > untilMs) return;
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
  const { messages, publishers, seen, monotonicMs } = work;
  const { publisherId } = backlog;
  const page = await messages.pageOf(backlog);
  const last = page.at(-1);
  if (last) {
    await publishPage(work, publisherId, page);
    await publishers.markSwept(publisherId, last.id);
    return { publisherId, afterId: last.id, limit: nextPageLimit(page) };
  }
  const observation = seen.get(publisherId);
  if (observation) observation.emptyAtMs = monotonicMs();
  await publishers.forget(publisherId, FORGET_AFTER_MS);
  return null;
}

/** Publishes the oldest message only: it shows whether Kafka is away for all or only for that gateway. */
async function help(work: Work, publisher: KnownPublisher): Promise<void> {
  const { id: publisherId, watermark } = publisher;
  try {
    const page = await work.messages.pageOf({ publisherId, afterId: watermark, limit: 1 });
    await publishPage(work, publisherId, page);
    const observation = work.seen.get(publisherId);
    if (observation) observation.helped = { watermark, atMs: work.monotonicMs() };
  } catch (error) {
    work.logger.warn(
      { err: error, publisherId },
      'failed to publish for a publisher, trying again',
    );
  }
}

async function publishPage(
  work: Work,
  publisherId: string,
  page: Parameters<typeof publishMissing>[1],
): Promise<void> {
  const { createdTopic, deliveries, records, metrics, logger, oldestAtMs } = work;
  await publishMissing(
    {
      createdTopic,
      deliveries,
      records,
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
