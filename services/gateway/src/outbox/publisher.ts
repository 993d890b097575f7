import { firstIdAt, timeMsOf, type IdPrefix } from '@posthorn/domain/ids/ids.ts';
import type { Message } from '@posthorn/domain/message/message.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { InsertOutcome, MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import type { PublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
import { publishInBatches } from '@posthorn/platform/outbox/publish-in-batches.ts';
import { StoreUnavailableError } from '@posthorn/platform/service/errors.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { Spans } from '@posthorn/platform/tracing/spans.ts';
import { createPublication, type Publication, type PublicationState } from './publish-created.ts';
import type { PublishBudget } from './publish-budget.ts';
import type { PublishPace } from './publish-pace.ts';
import { createOwnership, type Ownership } from './ownership.ts';
import { createUnconfirmedInserts, type UnconfirmedInserts } from './unconfirmed-inserts.ts';

export interface PublisherDeps {
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
export interface Publisher {
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

export function createPublisher(deps: PublisherDeps): Publisher {
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
