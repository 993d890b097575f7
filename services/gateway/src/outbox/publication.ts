import { forAttempts, type Message } from '@posthorn/domain/message.ts';
import { createKeepTrying, type KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import { withTimeout } from '@posthorn/platform/async/pause.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { StoreUnavailableError } from '@posthorn/platform/service/errors.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { Spans } from '@posthorn/platform/service/spans.ts';
import {
  notPublishedHere,
  PUBLISHED,
  type PublicationWait,
  PublicationWaits,
} from './publication-waits.ts';
import type { PublishBudget, PublishPace } from './publish-budget.ts';
import {
  createPublishQueue,
  estimatedBytesOf,
  type PublishQueue,
  tracePublish,
} from './publish-queue.ts';
import { createWatermarkTracker, type Origin, type WatermarkTracker } from './watermark-tracker.ts';

interface PublicationDeps {
  topic: string;
  publisherId: string;
  records: Pick<RecordLog, 'publish'>;
  messages: Pick<MessageStore, 'pageOf'>;
  /** Memory for messages that wait for Kafka, in bytes. */
  publishQueueBytes: number;
  /** Absent: no message is throttled. */
  pace?: PublishPace;
  /** Absent: no company waits for what it has published to be read. */
  budget?: Pick<PublishBudget, 'roomOf' | 'noteWritten'>;
  /** Absent or null when nothing is traced. */
  spans?: Spans | null;
  /** Sorts before the id of every message that will be added. */
  firstWatermark: string;
  /** Throws while it is not certain that these messages are this gateway's to publish. */
  assertOwner: () => void;
  logger: Logger;
  nowMs: () => number;
  /** Milliseconds of the monotonic clock. */
  monotonicMs: () => number;
}

export interface PublicationState {
  /** Kafka has acknowledged every message of this publisher up to this id. */
  watermark: string;
  /** Messages in memory that wait for Kafka. While messages are read back, a lower bound. */
  unpublished: number;
  /** How long the oldest unpublished message has waited, in milliseconds. Null when there is none. */
  behindMs: number | null;
  /**
   * For how long Kafka has not taken what was sent to it, or the store not returned a page, or publishing has stopped by
   * an error, in milliseconds; null when it goes on. A message may wait for longer although both answer, for the budget
   * of its company.
   */
  stuckMs: number | null;
  /** Companies that wait because too many of their records are unread. */
  waitingCompanies: number;
}

/**
 * A gateway publishes for so long after it sent a heartbeat that was stored. The sweep takes over after
 * 10 s without one (SILENT_MS there), so that a gateway that was suspended does not publish as well.
 */
export const OWNED_MS = 8_000;
/** The part of the queue that one page may fill, and below which the next page is read. */
const PAGE_PART = 1 / 8;

/**
 * Publishes stored messages after the response, one produce request at a time. Companies take turns
 * in each, and a message to many webhooks goes in several, so messages are completed out of order;
 * the watermark is the id up to which Kafka has everything. When a company exceeds its share of the
 * memory, its messages are read back from the store later; the other companies are not delayed.
 */
export class Publication {
  readonly #deps: PublicationDeps;
  readonly #queue: PublishQueue;
  readonly #overflow = new PublishOverflow(estimatedBytesOf);
  readonly #tracker: WatermarkTracker;
  readonly #waits = new PublicationWaits();
  readonly #closing = new AbortController();
  /** Ends with the time that `close` allows, not with the stop of the process: messages are accepted until then. */
  readonly #keepTrying: KeepTrying;
  /** The id that was handed over last; the first watermark before any was. */
  #lastId: string;
  /** A run may end before `#run` returns, when all waiting messages rest: the promise alone does not show it. */
  #isRunning = false;
  /** Resolves when the last run has ended. */
  #running: Promise<void> = Promise.resolve();
  #isAbandoned = false;
  /**
   * When the request of the current step to the store or Kafka began, in milliseconds since 1970; null without one. It
   * is kept when publishing stops by an error, so that the sweep takes over.
   */
  #steppingSinceMs: number | null = null;

  constructor(deps: PublicationDeps) {
    this.#deps = deps;
    const queue = createPublishQueue({
      topic: deps.topic,
      budgetBytes: deps.publishQueueBytes,
      pace: deps.pace,
      budget: deps.budget,
      onReady: () => {
        this.#start();
      },
    });
    this.#queue = deps.spans ? tracePublish(queue, deps.spans, deps.nowMs) : queue;
    this.#tracker = createWatermarkTracker(deps.firstWatermark);
    this.#lastId = deps.firstWatermark;
    this.#keepTrying = createKeepTrying({ logger: deps.logger, signal: this.#closing.signal });
  }

  /** Takes over stored messages, in the order of their ids. */
  add(stored: readonly Message[]): void {
    if (stored.length === 0) return;
    for (const message of stored) {
      const isDirect =
        !this.#overflow.hasCompany(message.companyId) && this.#queue.hasRoom(message);
      if (isDirect) this.#enqueue('direct', message);
      else this.#overflow.add(message, this.#lastId);
      this.#lastId = message.id;
    }
    this.#start();
  }

  /** Returns the wait for a message that was handed over. It is resolved when Kafka has its records already. */
  whenPublished(message: Pick<Message, 'id' | 'companyId'>): PublicationWait {
    if (this.#isAbandoned) {
      return message.id <= this.#tracker.watermark() ? PUBLISHED : notPublishedHere();
    }
    return this.isWaiting(message) ? this.#waits.add(message.id) : PUBLISHED;
  }

  /** True for a message that was handed over and waits for Kafka. */
  isWaiting(message: Pick<Message, 'id' | 'companyId'>): boolean {
    const readToId = this.#overflow.readToId();
    const isLeftToRead =
      readToId !== null && message.id > readToId && this.#overflow.hasMessage(message);
    return isLeftToRead || this.#tracker.isUnpublished(message.id);
  }

  state(): PublicationState {
    const sinceMs = (atMs: number): number => Math.max(0, this.#deps.nowMs() - atMs);
    const waiting = [this.#tracker.oldestAtMs(), this.#overflow.oldestAtMs()];
    const oldestMs = waiting.filter((each) => each !== null);
    const unpublished = this.#tracker.unpublished();
    return {
      watermark: this.#tracker.watermark(),
      unpublished: this.#overflow.readToId() === null ? unpublished : Math.max(1, unpublished),
      behindMs: oldestMs.length === 0 ? null : sinceMs(Math.min(...oldestMs)),
      stuckMs: this.#steppingSinceMs === null ? null : sinceMs(this.#steppingSinceMs),
      waitingCompanies: this.#queue.waitingCompanies(),
    };
  }

  /** Continues with the companies that have room in their budget again. */
  releaseWaiting(): void {
    this.#queue.releaseWaiting();
  }

  /** The memory that waiting messages hold, by estimate. */
  usedBytes(): number {
    return this.#queue.usedBytes() + this.#tracker.usedBytes();
  }

  /**
   * Publishes the remaining messages for up to `drainMs`. The sweep publishes those that are left then: a request to
   * Kafka may take longer than the drain, and is not awaited.
   */
  async close(drainMs: number): Promise<void> {
    this.#queue.endThrottle();
    await withTimeout(this.#running, drainMs).catch(() => {
      this.abandon();
    });
  }

  /** Publishes nothing more, because the sweep does. A request to Kafka that is under way may still succeed. */
  abandon(): void {
    this.#closing.abort();
    this.#isAbandoned = true;
    this.#waits.rejectAll();
  }

  #start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#running = this.#run();
  }

  #enqueue(origin: Origin, message: Message): void {
    this.#queue.add(
      forAttempts(message),
      this.#tracker.add(origin, message.id, message.createdAtMs),
    );
  }

  async #run(): Promise<void> {
    try {
      while (!this.#isAbandoned) {
        const afterId = this.#overflow.readToId();
        if (afterId !== null && this.#isPageWanted()) await this.#queuePage(afterId);
        // The next run starts when a message has rested, or a company has room again.
        else if (this.#queue.isEmpty()) return;
        else await this.#publishNext();
      }
    } catch (error) {
      // The retries were ended, or it was no outage. The batch is lost here, so the watermark stays where it is: the
      // sweep takes over and publishes from there on.
      this.#steppingSinceMs ??= this.#deps.nowMs();
      this.abandon();
      this.#deps.logger.warn(
        { err: error, watermark: this.#tracker.watermark() },
        'publishing stopped, the sweep publishes the rest',
      );
    } finally {
      this.#isRunning = false;
    }
  }

  async #publishNext(): Promise<void> {
    const { records, assertOwner } = this.#deps;
    const batch = this.#queue.takeBatch();
    await this.#untilDone('publish messages', async () => {
      assertOwner();
      if (batch.records.length > 0) await records.publish(batch.records);
    });
    this.#queue.acknowledge(batch);
    this.#waits.resolve(batch.completed);
    this.#tracker.advance(this.#overflow.readToId());
  }

  /** True when the companies whose messages have to be read back have few in memory. */
  #isPageWanted(): boolean {
    let held = 0;
    for (const companyId of this.#overflow.companies()) held += this.#queue.bytesOf(companyId);
    return held <= this.#deps.publishQueueBytes * PAGE_PART;
  }

  /**
   * Ignores messages beyond the id that was handed over last before the read: their insert may have been
   * running, so that an earlier message of the same batch may be missing from the page. Messages that
   * are handed over during the read are remembered: when the page was the last one they are queued, and
   * the overflow ends. Without that it would go on for as long as messages come during each read.
   */
  async #queuePage(afterId: string): Promise<void> {
    const overflow = this.#overflow;
    const lastId = this.#lastId;
    const pageBytes = this.#deps.publishQueueBytes * PAGE_PART;
    const limit = overflow.pageLimit(pageBytes);
    const wantedId = overflow.lastId();
    overflow.rememberArrivals(pageBytes);
    const page = await this.#readPage({ afterId, limit, wantedId });
    const known = page.filter(({ id }) => id <= lastId);
    for (const each of known) if (overflow.hasMessage(each)) this.#enqueue('readBack', each);
    const isEnd = page.length < limit || known.length < page.length;
    const last = known.at(-1);
    overflow.markRead(laterOf(last?.id ?? afterId, isEnd ? wantedId : ''), last?.createdAtMs);
    if (isEnd) for (const each of overflow.takeArrivals()) this.#enqueue('readBack', each);
    this.#tracker.advance(overflow.readToId());
  }

  /**
   * Right after an election a majority read may not show what was acknowledged before it. So a page that ends before
   * `wantedId` is read again. After OWNED_MS it is the end: a majority has stored a heartbeat meanwhile, and every
   * message stored before that is shown. The missing messages were removed, with their company.
   */
  #readPage({ afterId, limit, wantedId }: WantedPage): Promise<Message[]> {
    const { messages, publisherId, assertOwner, monotonicMs } = this.#deps;
    const startedAtMs = monotonicMs();
    return this.#untilDone('read messages back', async () => {
      const isSure = monotonicMs() - startedAtMs > OWNED_MS;
      assertOwner();
      const page = await messages.pageOf({ publisherId, afterId, limit });
      const isShort = page.length < limit && (page.at(-1)?.id ?? '') < wantedId;
      if (isShort && !isSure)
        throw new StoreUnavailableError('the store does not show what it has acknowledged');
      return page;
    });
  }

  async #untilDone<T>(purpose: string, step: () => Promise<T>): Promise<T> {
    this.#steppingSinceMs = this.#deps.nowMs();
    const fieldsOf = () => ({ watermark: this.#tracker.watermark() });
    const result = await this.#keepTrying(purpose, step, fieldsOf);
    this.#steppingSinceMs = null;
    return result;
  }
}

interface WantedPage {
  afterId: string;
  limit: number;
  /** The store has acknowledged the message with this id. */
  wantedId: string;
}

const laterOf = (one: string, other: string): string => (one > other ? one : other);

const MAX_PAGE = 200;

/**
 * Companies whose messages do not fit into the publish queue. Their messages are not kept in memory
 * but read back from the store, in the order of their ids.
 */
export class PublishOverflow {
  readonly #bytesOf: (message: Message) => number;
  /** Company → its first id that did not fit. */
  readonly #firstOf = new Map<string, string>();
  #readToId = '';
  #lastId = '';
  #oldestAtMs = 0;
  #bytes = 0;
  #count = 0;
  #arrivals = createArrivals(0);

  constructor(bytesOf: (message: Message) => number) {
    this.#bytesOf = bytesOf;
  }

  /** From its first message that did not fit until all were read back, every message of a company overflows. */
  hasCompany(companyId: string): boolean {
    return this.#firstOf.has(companyId);
  }

  /** `previousId` is the id that was handed over before this message. */
  add(message: Message, previousId: string): void {
    if (this.#firstOf.size === 0) {
      [this.#readToId, this.#oldestAtMs] = [previousId, message.createdAtMs];
      [this.#bytes, this.#count] = [0, 0];
    }
    const { companyId, id } = message;
    if (!this.#firstOf.has(companyId)) this.#firstOf.set(companyId, id);
    this.#lastId = id;
    this.#bytes += this.#bytesOf(message);
    this.#count += 1;
    this.#arrivals.add(message, this.#bytesOf(message));
  }

  /** Whether a message that was read back had overflowed. */
  hasMessage({ companyId, id }: Pick<Message, 'companyId' | 'id'>): boolean {
    const first = this.#firstOf.get(companyId);
    return first !== undefined && id >= first;
  }

  /** Everything up to this id is in memory or published. Null when nothing is left to read. */
  readToId(): string | null {
    return this.#firstOf.size === 0 ? null : this.#readToId;
  }

  /** The last message that was added; '' before any was. */
  lastId(): string {
    return this.#lastId;
  }

  /** Records that everything up to `id` was read; `createdAtMs` is that of the message read last. */
  markRead(id: string, createdAtMs: number | undefined): void {
    this.#readToId = id;
    this.#oldestAtMs = createdAtMs ?? this.#oldestAtMs;
    if (this.#readToId >= this.#lastId) this.#firstOf.clear();
  }

  /** Keeps the messages that are added from now on, up to `maxBytes` of them. */
  rememberArrivals(maxBytes: number): void {
    this.#arrivals = createArrivals(maxBytes);
  }

  /**
   * Returns the messages that were added since then, and counts them as read, when nothing else is
   * left to read. Returns none when they were more than `maxBytes`: they have to be read back.
   */
  takeArrivals(): readonly Message[] {
    const arrived = this.#arrivals.all();
    this.#arrivals = createArrivals(0);
    if (arrived.length > 0) this.markRead(this.#lastId, arrived.at(-1)?.createdAtMs);
    return arrived;
  }

  companies(): Iterable<string> {
    return this.#firstOf.keys();
  }

  /** A lower bound of the creation of the oldest message left to read. Null when nothing is. */
  oldestAtMs(): number | null {
    return this.#firstOf.size === 0 ? null : this.#oldestAtMs;
  }

  /** How many messages to read so that they take about `pageBytes`, by their mean size; 1 to 200. */
  pageLimit(pageBytes: number): number {
    const fitting = Math.floor((pageBytes * this.#count) / Math.max(1, this.#bytes));
    return Math.min(MAX_PAGE, Math.max(1, fitting));
  }
}

interface Arrivals {
  add: (message: Message, bytes: number) => void;
  /** Every message that was added; none when one did not fit. */
  all: () => readonly Message[];
}

function createArrivals(maxBytes: number): Arrivals {
  let messages: Message[] = [];
  let leftBytes = maxBytes;
  return {
    add(message, bytes) {
      leftBytes -= bytes;
      if (leftBytes >= 0) messages.push(message);
      else messages = [];
    },
    all: () => messages,
  };
}
