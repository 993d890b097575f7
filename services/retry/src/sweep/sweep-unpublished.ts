import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { forAttempts, type Message } from '@posthorn/domain/message.ts';
import { required } from '@posthorn/domain/required.ts';
import type { Loop } from '@posthorn/platform/async/loop.ts';
import type { OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
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
import {
  createLeasedLoop,
  type KeepLease,
  type LeaseHolder,
} from '@posthorn/platform/work/leased-loop.ts';
import type { RetryMetrics } from '../metrics.ts';
import {
  type Backlog,
  backlogOf,
  nextPageLimit,
  type Observation,
  observe,
  stepFor,
} from './when-taken-over.ts';

interface SweepUnpublishedDeps extends LeaseHolder {
  createdTopic: string;
  publishers: Pick<PublisherStore, 'list' | 'takeOver' | 'markSwept' | 'forget'>;
  messages: Pick<MessageStore, 'pageOf' | 'boundedPageOf'>;
  /** How many messages, of all publishers, a page reads at most. */
  maxRead: number;
  deliveries: Pick<DeliveryStore, 'statesOf'>;
  records: Pick<RecordLog, 'publish'>;
  metrics: Pick<RetryMetrics, 'swept'>;
  /** Resolves after this time, or when the signal is aborted. Never rejects. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Milliseconds of the monotonic clock. */
  monotonicMs: () => number;
  logger: Logger;
}

const EVERY_MS = 2_000;
/** Publishers are listed again after this time, so that one that dies during a long sweep gets its turn. */
const TICK_MS = 10_000;
const FORGET_AFTER_MS = 60_000;
/** A message to more webhooks than this is published in slices. */
const SLICE_RECORDS = 500;
/** With slices of 500 records 2,000 a second: less than one dispatcher delivers. */
const SLICE_PAUSE_MS = 250;
/** Records of a page: the publisher that comes next waits for so many. */
const PAGE_RECORDS = 10_000;

/** The lease of a tick, which passes through its pages and slices, and the end of the loop. */
interface Tick {
  keep: KeepLease;
  signal: AbortSignal;
}

const isWide = ({ targets }: Message): boolean => targets.length > SLICE_RECORDS;

/**
 * Publishes what a gateway stored and did not publish: everything after its watermark that has no delivery yet. It takes
 * over a publisher first, so that only one process publishes its messages
 * (docs/decisions/0023-one-owner-of-a-backlog.md). It publishes first and stores its progress afterwards, so that a crash
 * repeats a step and never skips one. A tick does nothing while another process has the lease.
 */
export class UnpublishedSweep implements Loop {
  readonly #deps: SweepUnpublishedDeps;
  readonly #loop: Loop;
  /** By publisher: when the oldest of its messages that is to be published here was accepted. */
  readonly #oldestAtMs = new Map<string, number>();
  /** By publisher; only of those that were listed in the last tick. */
  #seen = new Map<string, Observation>();
  /** The publisher whose page was the latest. */
  #latestId = '';

  constructor(deps: SweepUnpublishedDeps) {
    this.#deps = deps;
    this.#loop = createLeasedLoop({
      ...deps,
      name: 'sweep of unpublished messages',
      lease: 'sweeper',
      keepsLease: true,
      everyMs: EVERY_MS,
      run: (keep, signal) => this.#sweep({ keep, signal }),
    });
  }

  start(): void {
    this.#loop.start();
  }

  tick(): Promise<void> {
    return this.#loop.tick();
  }

  stop(): Promise<void> {
    // A send that is cut short is no loss: the next holder of the lease publishes the same page, and the dispatcher looks
    // up what is late.
    return this.#loop.stop();
  }

  /** When the oldest message found unpublished was accepted, in milliseconds since 1970; null when there is none. */
  oldestAtMs(): number | null {
    return this.#oldestAtMs.size > 0 ? Math.min(...this.#oldestAtMs.values()) : null;
  }

  /** Dead publishers come first: no other process publishes for them. */
  async #sweep(tick: Tick): Promise<void> {
    const { publishers, monotonicMs } = this.#deps;
    const listed = (await tick.keep()) ? await publishers.list() : [];
    this.#observe(listed);
    const own: Backlog[] = [];
    const stuck: KnownPublisher[] = [];
    for (const publisher of listed) {
      const seen = this.#seenOf(publisher.id);
      switch (stepFor(publisher, seen, monotonicMs())) {
        case 'sweep':
          own.push(backlogOf(publisher, seen));
          break;
        case 'take_over_silent':
          if (await this.#takeOver(publisher, 'heartbeat')) own.push(backlogOf(publisher, seen));
          break;
        case 'take_over_stuck':
          // Its gateway notices within a second. It is swept when its heartbeat is old.
          await this.#takeOver(publisher, 'watermark');
          break;
        case 'help':
          stuck.push(publisher);
          break;
        case 'leave':
          if (!publisher.isTakenOver) this.#oldestAtMs.delete(publisher.id);
      }
    }
    await this.#sweepByPages(own, tick);
    for (const publisher of stuck) if (await tick.keep()) await this.#help(publisher, tick);
  }

  #observe(listed: readonly KnownPublisher[]): void {
    const nowMs = this.#deps.monotonicMs();
    this.#seen = new Map(
      listed.map((publisher) => [
        publisher.id,
        observe(publisher, this.#seen.get(publisher.id), nowMs),
      ]),
    );
    for (const id of this.#oldestAtMs.keys()) if (!this.#seen.has(id)) this.#oldestAtMs.delete(id);
  }

  #seenOf(publisherId: string): Observation {
    return required(this.#seen, publisherId, 'observation of the publisher');
  }

  async #takeOver(
    publisher: KnownPublisher,
    unchanged: 'heartbeat' | 'watermark',
  ): Promise<boolean> {
    const { publishers, logger } = this.#deps;
    const { id: publisherId, silentMs, stuckMs } = publisher;
    const isOwn = await publishers.takeOver(publisher, unchanged);
    const reason = unchanged === 'heartbeat' ? 'it is silent' : 'it waits for Kafka or the store';
    if (isOwn) logger.warn({ publisherId, silentMs, stuckMs, reason }, 'took over a publisher');
    return isOwn;
  }

  /** Publishes the oldest message only: it shows whether Kafka is away for all or only for that gateway. */
  async #help({ id: publisherId, watermark }: KnownPublisher, tick: Tick): Promise<void> {
    const { messages, monotonicMs, logger } = this.#deps;
    try {
      const page = await messages.pageOf({ publisherId, afterId: watermark, limit: 1 });
      await this.#publishMissing(publisherId, page, tick);
      this.#seenOf(publisherId).helped = { watermark, atMs: monotonicMs() };
    } catch (error) {
      logger.warn({ err: error, publisherId }, 'failed to publish for a publisher, retrying');
    }
  }

  /**
   * Sweeps one page of each backlog after the other, so that a large one does not delay the others. Starts after the
   * publisher whose page was the latest: one that takes the time of a whole tick, and fails, must not be the only one in
   * every tick.
   */
  async #sweepByPages(own: readonly Backlog[], tick: Tick): Promise<void> {
    const { monotonicMs } = this.#deps;
    const untilMs = monotonicMs() + TICK_MS;
    const isLater = ({ publisherId }: Backlog): boolean => publisherId > this.#latestId;
    let left = [...own.filter(isLater), ...own.filter((each) => !isLater(each))];
    while (left.length > 0) {
      const unfinished: Backlog[] = [];
      for (const backlog of left) {
        if (monotonicMs() > untilMs || !(await tick.keep())) return;
        this.#latestId = backlog.publisherId;
        const next = await this.#tryPage(backlog, tick);
        if (next) unfinished.push(next);
      }
      left = unfinished;
    }
  }

  /** Returns what is left of the backlog; null when nothing is, or when it fails: others must not wait for it. */
  async #tryPage(backlog: Backlog, tick: Tick): Promise<Backlog | null> {
    try {
      return await this.#sweepPage(backlog, tick);
    } catch (error) {
      const { publisherId } = backlog;
      this.#deps.logger.warn({ err: error, publisherId }, 'failed to sweep a publisher, retrying');
      return null;
    }
  }

  async #sweepPage(backlog: Backlog, tick: Tick): Promise<Backlog | null> {
    const { messages, publishers, maxRead, monotonicMs } = this.#deps;
    const { publisherId, limit, isComplete } = backlog;
    const seen = this.#seenOf(publisherId);
    const read = await messages.boundedPageOf({ ...backlog, maxRead });
    const page = cutPage(read.messages);
    const last = page.at(-1);
    const readTo = last && page.length < read.messages.length ? last.id : read.readTo;
    if (last) {
      const unknown = page.filter(({ id }) => !seen.publishedEarly.has(id));
      await this.#publishMissing(publisherId, unknown, tick);
      if (!isComplete) seen.publishedEarly.add(unknown.map(({ id }) => id));
      await publishers.markSwept(publisherId, last.id);
    }
    seen.readTo = isComplete ? readTo : null;
    if (readTo !== null) {
      const nextLimit = last ? nextPageLimit(page) : limit;
      return { publisherId, afterId: readTo, limit: nextLimit, isComplete };
    }
    seen.emptyAtMs = monotonicMs();
    seen.isScannedAgain ||= isComplete;
    // Else another scan follows, from the watermark.
    if (isComplete) await publishers.forget(publisherId, FORGET_AFTER_MS);
    return null;
  }

  /**
   * Publishes the messages for those of their targets that have no recorded delivery. Messages to many webhooks come
   * last: each of them takes seconds, and delays the records of no other company.
   */
  async #publishMissing(publisherId: string, page: readonly Message[], tick: Tick): Promise<void> {
    const { createdTopic, deliveries, records, metrics, logger } = this.#deps;
    let left = [...page.filter((message) => !isWide(message)), ...page.filter(isWide)];
    while (left.length > 0) {
      const batch = takeForOneSend(left, ONE_SEND);
      left = left.slice(batch.length);
      const ids = batch.flatMap(({ id, targets }) => targets.map((to) => deliveryIdOf(id, to)));
      const missing = unpublishedAmong(batch, await deliveries.statesOf(ids));
      const [oldest] = missing;
      if (!oldest) continue;
      this.#oldestAtMs.set(publisherId, oldest.createdAtMs);
      const created = missing.flatMap((message) => createdRecords(createdTopic, message));
      if (missing.some(isWide)) await this.#publishInSlices(created, tick);
      else await records.publish(created);
      this.#oldestAtMs.delete(publisherId);
      metrics.swept.inc(created.length);
      const text = 'published messages that their gateway did not publish';
      logger.info({ publisherId, records: created.length }, text);
    }
  }

  async #publishInSlices(
    created: readonly OutgoingRecord[],
    { keep, signal }: Tick,
  ): Promise<void> {
    const { pause, records } = this.#deps;
    for (let begin = 0; begin < created.length; begin += SLICE_RECORDS) {
      await pause(SLICE_PAUSE_MS, signal);
      if (!(await keep())) throw new Error('the sweep stops, or another process has its lease');
      await records.publish(created.slice(begin, begin + SLICE_RECORDS));
    }
  }
}

/** Returns the first messages that have PAGE_RECORDS together, and one at least. */
function cutPage(messages: readonly Message[]): readonly Message[] {
  let records = 0;
  const end = messages.findIndex(({ targets }) => (records += targets.length) > PAGE_RECORDS);
  return end === -1 ? messages : messages.slice(0, Math.max(1, end));
}

/** The messages with only those targets whose delivery is to be attempted and is not recorded: the others were published. */
function unpublishedAmong(
  batch: readonly Message[],
  recorded: Awaited<ReturnType<DeliveryStore['statesOf']>>,
): Message[] {
  return batch
    .map(forAttempts)
    .map((message) => ({
      ...message,
      targets: message.targets.filter((target) => !recorded.has(deliveryIdOf(message.id, target))),
    }))
    .filter(({ targets }) => targets.length > 0);
}
