import type { Message } from '@posthorn/domain/message.ts';
import { createLoop } from '@posthorn/platform/async/loop.ts';
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
  /** Sends the heartbeat of the publisher. */
  tick: () => Promise<void>;
  /** Publishes what is left for up to `drainMs`, and leaves the rest to the sweep. */
  stop: (drainMs: number) => Promise<void>;
  state: () => PublicationState;
  /** What waiting messages hold in memory, by estimate. */
  usedBytes: () => number;
}

const HEARTBEAT_EVERY_MS = 1_000;

/**
 * The outbox tells once a second that its publisher is alive and how far it has published. When the
 * sweep has taken over, because no heartbeat came for 10 s or because Kafka could not be reached from
 * here, it goes on under a new name: what is stored under the old one is the sweep's to publish.
 */
export function createOutbox(deps: PublisherDeps): Outbox {
  let current = createPublisher(deps);
  const loop = createLoop({
    name: 'heartbeat',
    everyMs: HEARTBEAT_EVERY_MS,
    run: async () => {
      if (await current.beat()) await current.settleUnconfirmed();
      else await replacePublisher();
    },
    logger: deps.logger,
  });

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
      loop.start();
    },
    publisherId: () => current.id,
    store: (messages) => current.store(messages),
    tick: loop.tick,
    async stop(drainMs) {
      await current.drain(drainMs);
      // Waits for a running heartbeat, which would bring a removed publisher back.
      await loop.stop();
      await current.end();
    },
    state: () => current.state(),
    usedBytes: () => current.usedBytes(),
  };
}
