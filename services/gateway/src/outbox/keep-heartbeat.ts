import { createLoop } from '@posthorn/platform/async/loop.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { PublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
import type { Publication } from './publish-created.ts';
import type { UnconfirmedInserts } from './unconfirmed-inserts.ts';

export interface HeartbeatDeps {
  publisherId: string;
  publishers: PublisherStore;
  publication: Pick<Publication, 'state'>;
  unconfirmed: UnconfirmedInserts;
  logger: Logger;
}

export interface Heartbeat {
  /** Resolves when the publisher's document is stored: only then may messages name the publisher. */
  start: () => Promise<void>;
  tick: () => Promise<void>;
  /** Deletes the publisher's document when everything was published; otherwise the sweeper needs it. */
  stop: () => Promise<void>;
}

const EVERY_MS = 1_000;

/** Writes once a second, for the sweeper, that this gateway is alive and up to which id it has published. */
export function createHeartbeat(deps: HeartbeatDeps): Heartbeat {
  const { publisherId, publishers, publication, unconfirmed, logger } = deps;
  async function beat(): Promise<void> {
    const { watermark, behindMs } = publication.state();
    await publishers.heartbeat(publisherId, unconfirmed.capWatermark(watermark), behindMs);
  }

  const loop = createLoop({
    name: 'heartbeat',
    everyMs: EVERY_MS,
    run: async () => {
      await beat();
      await unconfirmed.tick();
    },
    logger,
  });

  return {
    async start() {
      await beat();
      loop.start();
    },
    tick: loop.tick,
    async stop() {
      // Also waits for a running heartbeat, which would bring a forgotten publisher back.
      await loop.stop();
      const { unpublished } = publication.state();
      if (unpublished > 0 || unconfirmed.hasAny()) await beat();
      else await publishers.forget(publisherId, 0);
    },
  };
}
