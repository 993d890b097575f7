import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { DeliveryState } from '@posthorn/domain/delivery/delivery.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { required } from '@posthorn/domain/required.ts';
import { createLoop, type Loop, stopSoon } from '@posthorn/platform/async/loop.ts';
import type { OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import type {
  KnownPublisher,
  PublisherStore,
} from '@posthorn/platform/mongo/messages/publishers.ts';
import {
  createdRecords,
  ONE_SEND,
  takeForOneSend,
} from '@posthorn/platform/records/created-records.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { RetryMetrics } from '../retry-metrics.ts';
import {
  type Backlog,
  backlogOf,
  nextPageLimit,
  type Observation,
  observe,
  stepFor,
} from './when-taken-over.ts';

export interface UnpublishedSweep extends Loop {
  /**
   * When the oldest message that was found unpublished was accepted, in milliseconds since 1970; null
   * when there is none.
   */
  oldestAtMs: () => number | null;
}

const EVERY_MS = 2_000;
/**
 * Publishes what a gateway stored and did not publish: everything after its watermark that has no
 * delivery yet. It takes over a publisher first, so that only one process publishes its messages
 * (docs/decisions/0023-one-owner-of-a-backlog.md). It publishes first and stores its progress
 * afterwards, so that a crash repeats a step and never skips one. A tick does nothing while another
 * process holds the lease.
 */
export function createUnpublishedSweep(deps: SweepUnpublishedDeps): UnpublishedSweep {
  const stopping = new AbortController();
  const work: Work = {
    ...deps,
    oldestAtMs: new Map(),
    seen: new Map(),
    latestId: '',
    stopping: stopping.signal,
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
      // A send that is cut short is no loss: the next holder of the lease publishes the same page, and the dispatcher
      // looks up what is late.
      stopping.abort();
      await stopSoon(loop);
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
        own.push(backlogIn(work, publisher));
        break;
      case 'take_over_silent':
        if (await takeOver(work, publisher, 'heartbeat')) own.push(backlogIn(work, publisher));
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
  return stepFor(publisher, observationOf(seen, publisher), monotonicMs());
}

function backlogIn({ seen }: Work, publisher: KnownPublisher): Backlog {
  return backlogOf(publisher, observationOf(seen, publisher));
}

function observationOf(seen: Work['seen'], { id }: KnownPublisher) {
  return required(seen, id, 'observation of the publisher');
}

async function takeOver(
  { publishers, logger }: Work,
  publisher: KnownPublisher,
  unchanged: 'heartbeat' | 'watermark',
): Promise<boolean> {
  const { id: publisherId, silentMs, stuckMs } = publisher;
  const isOwn = await publishers.takeOver(publisher, unchanged);
  const reason = unchanged === 'heartbeat' ? 'it is silent' : 'it waits for Kafka or the store';
  if (isOwn) logger.warn({ publisherId, silentMs, stuckMs, reason }, 'took over a publisher');
  return isOwn;
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

interface SweepUnpublishedDeps {
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

const LEASE = 'sweeper';
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
async function publishPage(
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

interface PublishMissingDeps {
  createdTopic: string;
  deliveries: Pick<DeliveryStore, 'statesOf'>;
  records: Pick<RecordLog, 'publish'>;
  /** Called before the records are published, with the oldest message that has none. */
  onMissing: (oldest: Message) => void;
  onPublished: (records: number) => void;
  /** Is awaited before each SLICE_RECORDS of a message to more webhooks. */
  beforeSlice: () => Promise<void>;
}

/** A message to more webhooks than this is published in slices. */
const SLICE_RECORDS = 500;

/**
 * Publishes the messages for those of their targets that have no recorded delivery. Messages to many webhooks come
 * last: each of them takes seconds, so that it does not stand before the records of everybody else.
 */
async function publishMissing(deps: PublishMissingDeps, page: readonly Message[]): Promise<void> {
  const isWide = ({ targets }: Message): boolean => targets.length > SLICE_RECORDS;
  let left = [...page.filter((message) => !isWide(message)), ...page.filter(isWide)];
  while (left.length > 0) {
    const batch = takeForOneSend(left, ONE_SEND);
    const recorded = await deps.deliveries.statesOf(deliveryIdsOf(batch));
    const missing = unpublishedAmong(batch, recorded);
    const [oldest] = missing;
    if (oldest) {
      deps.onMissing(oldest);
      const created = missing.flatMap((message) => createdRecords(deps.createdTopic, message));
      if (missing.some(isWide)) await publishInSlices(deps, created);
      else await deps.records.publish(created);
      deps.onPublished(created.length);
    }
    left = left.slice(batch.length);
  }
}

async function publishInSlices(
  { records, beforeSlice }: PublishMissingDeps,
  created: readonly OutgoingRecord[],
): Promise<void> {
  for (let begin = 0; begin < created.length; begin += SLICE_RECORDS) {
    await beforeSlice();
    await records.publish(created.slice(begin, begin + SLICE_RECORDS));
  }
}

function deliveryIdsOf(batch: readonly Message[]): string[] {
  return batch.flatMap(({ id, targets }) => targets.map((target) => deliveryIdOf(id, target)));
}

/** The messages with only those targets whose delivery is not recorded: the others were published. */
function unpublishedAmong(
  batch: readonly Message[],
  recorded: ReadonlyMap<string, DeliveryState>,
): Message[] {
  return batch
    .map((message) => {
      const isMissing = (target: string) => !recorded.has(deliveryIdOf(message.id, target));
      return { ...message, targets: message.targets.filter(isMissing) };
    })
    .filter(({ targets }) => targets.length > 0);
}
