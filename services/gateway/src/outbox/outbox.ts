import type { Message } from '@posthorn/domain/message/message.ts';
import { createLoop, type Loop } from '@posthorn/platform/async/loop.ts';
import { withTimeout } from '@posthorn/platform/async/with-timeout.ts';
import type { InsertOutcome } from '@posthorn/platform/mongo/messages/messages.ts';
import type { PublicationState } from './publish-created.ts';
import { createPublisher, type PublisherDeps } from './publisher.ts';

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
