import { firstIdAt, type IdPrefix, timeMsOf } from '@posthorn/domain/ids.ts';
import { forAttempts, type Message } from '@posthorn/domain/message.ts';
import { createLoop, type Loop } from '@posthorn/platform/async/loop.ts';
import { withTimeout } from '@posthorn/platform/async/pause.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { InsertOutcome, MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import type { PublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
import { publishInBatches } from '@posthorn/platform/records/created-records.ts';
import { StoreUnavailableError } from '@posthorn/platform/service/errors.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { Spans } from '@posthorn/platform/service/spans.ts';
import { Gauge, type Registry } from 'prom-client';
import { OWNED_MS, Publication, type PublicationState } from './publication.ts';
import { notPublishedHere, PUBLISHED, type PublicationWait } from './publication-waits.ts';
import { createPublishAgain, type StoredMessage } from './publish-again.ts';
import type { PublishBudget, PublishPace } from './publish-budget.ts';

/** Shows the messages that Kafka has not acknowledged, at each scrape. */
export function watchUnpublished(registry: Registry, outbox: Pick<Outbox, 'state'>): void {
  new Gauge({
    name: 'posthorn_unpublished_messages',
    help: 'Accepted messages that Kafka has not acknowledged yet.',
    registers: [registry],
    collect() {
      this.set(outbox.state().unpublished);
    },
  });
  new Gauge({
    name: 'posthorn_unpublished_oldest_seconds',
    help: 'Age of the oldest accepted message that Kafka has not acknowledged; while companies wait for their records to be read, for how long Kafka has not answered.',
    registers: [registry],
    collect() {
      const { behindMs, stuckMs, waitingCompanies } = outbox.state();
      this.set(((waitingCompanies > 0 ? stuckMs : behindMs) ?? 0) / 1_000);
    },
  });
  new Gauge({
    name: 'posthorn_publish_waiting_companies',
    help: 'Companies whose messages wait because too many of their records in Kafka are unread.',
    registers: [registry],
    collect() {
      this.set(outbox.state().waitingCompanies);
    },
  });
}

/** Stores messages and publishes them, so that each stored message is published by exactly one process. */
export interface Outbox {
  /** Resolves when the first publisher is stored. Only then may messages be built. */
  start: () => Promise<void>;
  /** The publisher that messages built now must name. */
  publisherId: () => string;
  /** Stores messages that were just built, in one write. They are published after it. */
  store: (messages: readonly Message[]) => Promise<InsertOutcome[]>;
  /** Returns the wait for a message that `store` has just stored. */
  whenPublished: (message: StoredMessage) => PublicationWait;
  /**
   * Returns the wait for a message that any gateway has stored, before or now. Its records are published again unless this
   * gateway still publishes them, or its publisher is known to have done so.
   */
  ensurePublished: (message: StoredMessage) => PublicationWait;
  /** Sends the heartbeat of the publisher, then looks up inserts whose result is unknown. */
  tick: () => Promise<void>;
  /** Publishes the remaining messages for up to `drainMs`, and leaves the others to the sweep. */
  stop: (drainMs: number) => Promise<void>;
  state: () => PublicationState;
  /** Continues with the companies that have room in their budget again. */
  releaseWaiting: () => void;
  /** The memory that waiting messages use, by estimate. */
  usedBytes: () => number;
}

const EVERY_MS = 1_000;
/** A heartbeat under way is awaited, because it would bring a removed publisher back. */
const LAST_BEAT_MS = 2_000;
/** With the one above less than the 8 s in which a gateway may publish after a heartbeat. The sweep has the rest. */
const DRAIN_MS = 5_000;

/**
 * Once a second the outbox stores that its publisher is alive and how far it has published. When the sweep has taken
 * over, because no heartbeat came for 10 s or because Kafka could not be reached from here, the outbox continues under a
 * new name: the sweep publishes the messages stored under the old one.
 */
export function createOutbox(deps: PublisherDeps): Outbox {
  let current = new Publisher(deps);
  const { logger } = deps;
  const loopOf = (name: string, run: () => Promise<void>): Loop =>
    createLoop({ name, everyMs: EVERY_MS, run, logger });
  const heartbeat = loopOf('heartbeat', async () => {
    if (!(await current.beat())) await replacePublisher();
  });
  // Apart from the heartbeat: it waits for Kafka, and without a heartbeat the sweep takes over.
  const unconfirmed = loopOf('unconfirmed inserts', () => current.publishConfirmed());
  const publishAgain = createPublishAgain(deps);

  async function replacePublisher(): Promise<void> {
    const { unpublished, behindMs } = current.publication.state();
    deps.logger.warn(
      { publisherId: current.id, unpublished, behindMs },
      'the sweep publishes the messages of this gateway so far, continuing as a new publisher',
    );
    await current.handOver();
    const next = new Publisher(deps);
    await next.register();
    current = next;
  }

  return {
    async start() {
      await current.register();
      heartbeat.start();
      unconfirmed.start();
    },
    publisherId: () => current.id,
    store: (messages) => current.store(messages),
    whenPublished: (message) =>
      current.owns(message) ? current.publication.whenPublished(message) : notPublishedHere(),
    ensurePublished: (message) => current.findWait(message) ?? publishAgain(message),
    async tick() {
      await heartbeat.tick();
      await unconfirmed.tick();
    },
    async stop(drainMs) {
      void unconfirmed.stop();
      await withTimeout(heartbeat.stop(), LAST_BEAT_MS).catch(() => undefined);
      await current.drain(Math.min(drainMs, DRAIN_MS));
      // The heartbeat may have continued as a new publisher meanwhile.
      await current.end();
    },
    state: () => current.publication.state(),
    releaseWaiting: () => {
      current.publication.releaseWaiting();
    },
    usedBytes: () => current.publication.usedBytes(),
  };
}

interface PublisherDeps {
  topic: string;
  records: Pick<RecordLog, 'publish'>;
  messages: Pick<MessageStore, 'insertAll' | 'pageOf' | 'findCommitted'>;
  publishers: PublisherStore;
  /** Memory for messages that wait for Kafka, in bytes. */
  publishQueueBytes: number;
  /** Absent: no message is throttled between its parts. */
  pace?: PublishPace;
  /** Absent: no company waits for what it has published to be read. */
  budget?: Pick<PublishBudget, 'roomOf' | 'noteWritten'>;
  /** Absent or null when nothing is traced. */
  spans?: Spans | null;
  newId: (prefix: IdPrefix) => string;
  logger: Logger;
  nowMs: () => number;
  /** Milliseconds of the monotonic clock. */
  monotonicMs: () => number;
}

/**
 * A name under which this gateway stores messages, and the messages that it has stored and not yet published under that
 * name. The gateway is the only process that publishes them, until the sweep takes over.
 */
class Publisher {
  readonly id: string;
  readonly publication: Publication;
  readonly #deps: PublisherDeps;
  readonly #ownership: Ownership;
  readonly #unconfirmed: UnconfirmedInserts;
  #isHandedOver = false;
  /** A message that is stored from now on would never be published. */
  #isEnded = false;
  #runningInserts = 0;
  /** Everything up to this id is published: the id was made at a moment when nothing was left to publish. */
  #idleWatermark: string;

  constructor(deps: PublisherDeps) {
    const { records, topic, messages } = deps;
    this.#deps = deps;
    this.id = deps.newId('gw');
    this.#idleWatermark = firstIdAt('msg', timeMsOf(this.id));
    const ownership = createOwnership(deps.monotonicMs);
    this.#ownership = ownership;
    this.publication = new Publication({
      ...deps,
      publisherId: this.id,
      firstWatermark: this.#idleWatermark,
      assertOwner: ownership.assert,
    });
    this.#unconfirmed = createUnconfirmedInserts({
      messages,
      async publish(late) {
        ownership.assert();
        await publishInBatches(records, topic, late.map(forAttempts));
      },
      confirmedForMs: ownership.confirmedForMs,
    });
  }

  /** Resolves when the publisher is stored. Only then may messages name it. */
  async register(): Promise<void> {
    await this.#ownership.confirmBy(async () => {
      await this.#deps.publishers.register(this.id, this.#idleWatermark);
      return true;
    });
  }

  /** Whether the message was stored under this name. */
  owns({ publisherId }: StoredMessage): boolean {
    return publisherId === this.id;
  }

  /** Null for a message that this publisher is not known to publish, or to have published. */
  findWait(message: StoredMessage): PublicationWait | null {
    if (!this.owns(message)) return null;
    if (this.publication.isWaiting(message)) return this.publication.whenPublished(message);
    return message.id <= this.watermark() ? PUBLISHED : null;
  }

  /** Stores the messages in one write, and takes over the stored ones, to publish them. */
  async store(batch: readonly Message[]): Promise<InsertOutcome[]> {
    if (this.#isEnded) throw new StoreUnavailableError('this gateway stops');
    this.#runningInserts += 1;
    try {
      const outcomes = await this.#deps.messages.insertAll(batch);
      const withOutcome = (wanted: InsertOutcome): Message[] =>
        batch.filter((_, index) => outcomes[index] === wanted);
      if (!this.#isHandedOver) {
        this.#unconfirmed.add(withOutcome('unconfirmed'));
        this.publication.add(withOutcome('stored'));
      }
      return outcomes;
    } finally {
      this.#runningInserts -= 1;
    }
  }

  /** Stores that the publisher is alive. Returns false when the sweep has taken over. */
  beat(): Promise<boolean> {
    // Ids are made in the order of inserts: later messages have a higher one.
    if (this.#isIdle()) this.#idleWatermark = this.#deps.newId('msg');
    const { stuckMs } = this.publication.state();
    return this.#ownership.confirmBy(() =>
      this.#deps.publishers.heartbeat(this.id, this.watermark(), stuckMs),
    );
  }

  /** Looks up inserts whose result is unknown and publishes those that are stored. */
  publishConfirmed(): Promise<void> {
    return this.#unconfirmed.tick();
  }

  /** Publishes nothing more, and leaves everything after the watermark to the sweep. */
  async handOver(): Promise<void> {
    this.#isHandedOver = true;
    this.publication.abandon();
    await this.#deps.publishers.handOver(this.id, this.watermark());
  }

  /** Publishes the remaining messages for up to `drainMs`. */
  async drain(drainMs: number): Promise<void> {
    await this.publication.close(drainMs);
    // A message of a late insert is handed over: nothing may be published once the heartbeats end.
    this.publication.abandon();
  }

  /**
   * Removes the publisher when everything is published, else hands it over. One that was handed over stays for the
   * sweep: messages that were stored under its name since then are known to nobody here.
   */
  async end(): Promise<void> {
    this.#isEnded = true;
    const { publishers } = this.#deps;
    if (this.#isIdle() && !this.#isHandedOver) await publishers.forget(this.id, 0);
    else await publishers.handOver(this.id, this.watermark());
  }

  #isIdle(): boolean {
    const { unpublished } = this.publication.state();
    return this.#runningInserts === 0 && unpublished === 0 && !this.#unconfirmed.hasAny();
  }

  /** Kafka has every message of this publisher up to this id, also those whose insert was not confirmed. */
  watermark(): string {
    const capped = this.#unconfirmed.capWatermark(this.publication.state().watermark);
    return capped > this.#idleWatermark ? capped : this.#idleWatermark;
  }
}

/**
 * Heartbeats come every second. While they fail, or after the process was suspended, the time between two does not
 * count.
 */
const MOST_BETWEEN_MS = 2_000;

/** Whether the messages of a publisher are this gateway's to publish. */
interface Ownership {
  /** Runs a heartbeat; when it returns true, the messages are this gateway's for OWNED_MS from its begin on. */
  confirmBy: (heartbeat: () => Promise<boolean>) => Promise<boolean>;
  /** Throws StoreUnavailableError when that time has passed. */
  assert: () => void;
  /** For how many milliseconds in all a majority has stored the heartbeats. Does not grow while MongoDB is away. */
  confirmedForMs: () => number;
}

function createOwnership(monotonicMs: () => number): Ownership {
  let confirmedAtMs = -Infinity;
  let confirmedForMs = 0;
  return {
    async confirmBy(heartbeat) {
      const sentAtMs = monotonicMs();
      const isOwner = await heartbeat();
      if (!isOwner) return false;
      confirmedForMs += Math.min(sentAtMs - confirmedAtMs, MOST_BETWEEN_MS);
      confirmedAtMs = sentAtMs;
      return true;
    },
    assert() {
      if (monotonicMs() - confirmedAtMs > OWNED_MS)
        throw new StoreUnavailableError('no heartbeat of this gateway was stored for 8 s');
    },
    confirmedForMs: () => confirmedForMs,
  };
}

interface UnconfirmedInsertsDeps {
  messages: Pick<MessageStore, 'findCommitted'>;
  /** Publishes messages out of the order of the watermark. Rejects when Kafka did not store them. */
  publish: (messages: readonly Message[]) => Promise<void>;
  /** The total time in which a majority stored heartbeats. An insert is not given up for the time without MongoDB. */
  confirmedForMs: () => number;
}

/**
 * Inserts whose result is unknown: the connection was lost, or the write concern timed out. The
 * client got 503, but the message may be stored, and every stored message must be published.
 */
export interface UnconfirmedInserts {
  add: (batch: readonly Message[]) => void;
  /** Publishes the messages that are stored. Forgets those still absent after GIVE_UP_AFTER_MS. */
  tick: () => Promise<void>;
  hasAny: () => boolean;
  /** Returns the watermark, or an id directly below the oldest of these inserts if that is lower. */
  capWatermark: (watermark: string) => string;
}

/**
 * The timeouts of the write concern (10 s) and the socket (20 s) end only our wait: a mongod that was suspended executes
 * the insert when it resumes, even minutes later. So only time counts in which it stores for us, and of that far more than
 * an insert takes.
 */
const GIVE_UP_AFTER_MS = 60_000;
/** Messages per look-up: 25 MiB of the largest. */
const PAGE = 100;

/** While an insert is unconfirmed the watermark stays below it, so that after a crash the sweep finds it. */
export function createUnconfirmedInserts({
  messages,
  publish,
  confirmedForMs,
}: UnconfirmedInsertsDeps): UnconfirmedInserts {
  /** By message id: `confirmedForMs` when it was added. */
  const addedAtMs = new Map<string, number>();
  return {
    add(batch) {
      for (const { id } of batch) addedAtMs.set(id, confirmedForMs());
    },
    async tick() {
      if (addedAtMs.size === 0) return;
      const lookedUpAtMs = confirmedForMs();
      const ids = [...addedAtMs.keys()];
      for (let begin = 0; begin < ids.length; begin += PAGE) {
        const found = await messages.findCommitted(ids.slice(begin, begin + PAGE));
        await publish(found);
        for (const { id } of found) addedAtMs.delete(id);
      }
      for (const [id, atMs] of addedAtMs) {
        if (lookedUpAtMs - atMs > GIVE_UP_AFTER_MS) addedAtMs.delete(id);
      }
    },
    hasAny: () => addedAtMs.size > 0,
    capWatermark(watermark) {
      let capped = watermark;
      // An id without its last character sorts directly before the id.
      for (const id of addedAtMs.keys()) if (id <= capped) capped = id.slice(0, -1);
      return capped;
    },
  };
}
