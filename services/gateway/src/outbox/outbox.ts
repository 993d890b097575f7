import { firstIdAt, type IdPrefix, timeMsOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { createLoop, type Loop } from '@posthorn/platform/async/loop.ts';
import { withTimeout } from '@posthorn/platform/async/pause.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { InsertOutcome, MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import type { PublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
import { publishInBatches } from '@posthorn/platform/outbox/publish-in-batches.ts';
import { StoreUnavailableError } from '@posthorn/platform/service/errors.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { Spans } from '@posthorn/platform/tracing/spans.ts';
import { Gauge, type Registry } from 'prom-client';
import {
  createPublication,
  OWNED_MS,
  type Publication,
  type PublicationState,
} from './publication.ts';
import type { PublishBudget, PublishPace } from './publish-budget.ts';

/** Shows what Kafka has not acknowledged, at each scrape. */
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
  /** Sends the heartbeat of the publisher, then looks up inserts whose result is unknown. */
  tick: () => Promise<void>;
  /** Publishes what is left for up to `drainMs`, and leaves the rest to the sweep. */
  stop: (drainMs: number) => Promise<void>;
  state: () => PublicationState;
  /** Goes on with the companies that have room in their budget again. */
  releaseWaiting: () => void;
  /** What waiting messages hold in memory, by estimate. */
  usedBytes: () => number;
}

const EVERY_MS = 1_000;
/** A heartbeat under way is awaited, because it would bring a removed publisher back. */
const LAST_BEAT_MS = 2_000;
/** With the one above less than the 8 s in which a gateway may publish after a heartbeat. The sweep has the rest. */
const DRAIN_MS = 5_000;

/**
 * The outbox tells once a second that its publisher is alive and how far it has published. When the
 * sweep has taken over, because no heartbeat came for 10 s or because Kafka could not be reached from
 * here, it goes on under a new name: what is stored under the old one is the sweep's to publish.
 */
export function createOutbox(deps: PublisherDeps): Outbox {
  let current = createPublisher(deps);
  const { logger } = deps;
  const loopOf = (name: string, run: () => Promise<void>): Loop =>
    createLoop({ name, everyMs: EVERY_MS, run, logger });
  const heartbeat = loopOf('heartbeat', async () => {
    if (!(await current.beat())) await replacePublisher();
  });
  // Apart from the heartbeat: it waits for Kafka, and without a heartbeat the sweep takes over.
  const unconfirmed = loopOf('unconfirmed inserts', () => current.publishConfirmed());

  async function replacePublisher(): Promise<void> {
    const { unpublished, behindMs } = current.state();
    deps.logger.warn(
      { publisherId: current.id, unpublished, behindMs },
      'the sweep publishes the messages of this gateway so far, continuing as a new publisher',
    );
    await current.handOver();
    const next = createPublisher(deps);
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
    async tick() {
      await heartbeat.tick();
      await unconfirmed.tick();
    },
    async stop(drainMs) {
      void unconfirmed.stop();
      await withTimeout(heartbeat.stop(), LAST_BEAT_MS).catch(() => undefined);
      await current.drain(Math.min(drainMs, DRAIN_MS));
      await current.end();
    },
    state: () => current.state(),
    releaseWaiting: () => {
      current.releaseWaiting();
    },
    usedBytes: () => current.usedBytes(),
  };
}

interface PublisherDeps {
  topic: string;
  records: Pick<RecordLog, 'publish'>;
  messages: Pick<MessageStore, 'insertAll' | 'pageOf' | 'findCommitted'>;
  publishers: PublisherStore;
  /** What messages waiting for Kafka may hold in memory, in bytes. */
  publishQueueBytes: number;
  /** Absent: no message rests. */
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
 * A name under which this gateway stores messages, and what it has stored and not yet published under
 * it. The gateway is the only one that publishes these messages, until the sweep takes over.
 */
interface Publisher {
  readonly id: string;
  /** Resolves when the publisher is stored. Only then may messages name it. */
  register: () => Promise<void>;
  /** Stores the messages in one write, and takes over what was stored, to publish it. */
  store: (messages: readonly Message[]) => Promise<InsertOutcome[]>;
  /** Stores that the publisher is alive. Returns false when the sweep has taken over. */
  beat: () => Promise<boolean>;
  /** Looks up inserts whose result is unknown and publishes those that are stored. */
  publishConfirmed: () => Promise<void>;
  /** Publishes nothing more, and leaves everything after the watermark to the sweep. */
  handOver: () => Promise<void>;
  /** Publishes what is left for up to `drainMs`. */
  drain: (drainMs: number) => Promise<void>;
  /** Ends the publisher: removes it when everything is published, else hands over the rest. */
  end: () => Promise<void>;
  state: () => PublicationState;
  releaseWaiting: () => void;
  usedBytes: () => number;
}

interface Work extends PublisherDeps {
  id: string;
  ownership: Ownership;
  publication: Publication;
  unconfirmed: UnconfirmedInserts;
  isHandedOver: boolean;
  /** What is stored from now on would never be published. */
  isEnded: boolean;
  runningInserts: number;
  /** Everything up to this id is published: it was made at a moment when nothing was left. */
  idleWatermark: string;
}

function createPublisher(deps: PublisherDeps): Publisher {
  const work = createWork(deps);
  const { id, publication, unconfirmed, ownership } = work;
  const { publishers } = deps;
  return {
    id,
    register: async () => {
      await ownership.confirmBy(async () => {
        await publishers.register(id, work.idleWatermark);
        return true;
      });
    },
    store: (batch) => store(work, batch),
    beat: () => beat(work),
    publishConfirmed: unconfirmed.tick,
    handOver: async () => {
      work.isHandedOver = true;
      publication.abandon();
      await publishers.handOver(id, watermarkOf(work));
    },
    async drain(drainMs) {
      await publication.close(drainMs);
      // What a late insert stores is handed over: nothing may be published once the heartbeats end.
      publication.abandon();
    },
    end: () => {
      work.isEnded = true;
      return isIdle(work) ? publishers.forget(id, 0) : publishers.handOver(id, watermarkOf(work));
    },
    state: publication.state,
    releaseWaiting: publication.releaseWaiting,
    usedBytes: publication.usedBytes,
  };
}

function createWork(deps: PublisherDeps): Work {
  const { records, topic, messages, monotonicMs } = deps;
  const id = deps.newId('gw');
  const firstWatermark = firstIdAt('msg', timeMsOf(id));
  const ownership = createOwnership(monotonicMs);
  return {
    ...deps,
    id,
    ownership,
    publication: createPublication({
      ...deps,
      publisherId: id,
      firstWatermark,
      assertOwner: ownership.assert,
    }),
    unconfirmed: createUnconfirmedInserts({
      messages,
      async publish(late) {
        ownership.assert();
        await publishInBatches(records, topic, late);
      },
      confirmedForMs: ownership.confirmedForMs,
    }),
    isHandedOver: false,
    isEnded: false,
    runningInserts: 0,
    idleWatermark: firstWatermark,
  };
}

async function store(work: Work, batch: readonly Message[]): Promise<InsertOutcome[]> {
  if (work.isEnded) throw new StoreUnavailableError('this gateway stops');
  work.runningInserts += 1;
  try {
    const outcomes = await work.messages.insertAll(batch);
    const withOutcome = (wanted: InsertOutcome): Message[] =>
      batch.filter((_, index) => outcomes[index] === wanted);
    if (!work.isHandedOver) {
      work.unconfirmed.add(withOutcome('unconfirmed'));
      work.publication.add(withOutcome('stored'));
    }
    return outcomes;
  } finally {
    work.runningInserts -= 1;
  }
}

function beat(work: Work): Promise<boolean> {
  const { id, publishers, publication, ownership, newId } = work;
  // Ids are made in the order of inserts: later messages have a higher one.
  if (isIdle(work)) work.idleWatermark = newId('msg');
  const { stuckMs } = publication.state();
  return ownership.confirmBy(() => publishers.heartbeat(id, watermarkOf(work), stuckMs));
}

function isIdle({ runningInserts, publication, unconfirmed }: Work): boolean {
  return runningInserts === 0 && publication.state().unpublished === 0 && !unconfirmed.hasAny();
}

function watermarkOf({ unconfirmed, publication, idleWatermark }: Work): string {
  const capped = unconfirmed.capWatermark(publication.state().watermark);
  return capped > idleWatermark ? capped : idleWatermark;
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
  /** For how long in all a majority has stored heartbeats. Time without MongoDB must not give an insert up. */
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
