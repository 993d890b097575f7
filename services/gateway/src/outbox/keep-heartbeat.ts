import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { PublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
import type { Publication } from './publish-created.ts';
import type { Doubts } from './unconfirmed-inserts.ts';

export interface HeartbeatDeps {
  publisherId: string;
  publishers: PublisherStore;
  publication: Pick<Publication, 'state'>;
  doubts: Doubts;
  logger: Logger;
}

export interface Heartbeat {
  /** Resolves when the publisher's document exists: only then may messages name it. */
  start: () => Promise<void>;
  tick: () => Promise<void>;
  /** Leaves nothing for the sweeper when everything was published. */
  stop: () => Promise<void>;
}

const EVERY_MS = 1_000;

/** Tells the sweeper, once a second, that this gateway lives and up to where it has published. */
export function createHeartbeat(deps: HeartbeatDeps): Heartbeat {
  const { publisherId, publishers, publication, doubts, logger } = deps;
  let timer: NodeJS.Timeout | undefined;
  let isBusy = false;

  async function beat(): Promise<void> {
    const { watermark, behindMs } = publication.state();
    await publishers.heartbeat(publisherId, doubts.hold(watermark), behindMs);
  }

  async function tick(): Promise<void> {
    if (isBusy) return;
    isBusy = true;
    await beat()
      .then(() => doubts.tick())
      .catch((error: unknown) => {
        logger.warn({ err: error }, 'heartbeat failed, the next one follows');
      });
    isBusy = false;
  }

  return {
    async start() {
      await beat();
      timer = setInterval(() => void tick(), EVERY_MS);
    },
    tick,
    async stop() {
      clearInterval(timer);
      const { unpublished } = publication.state();
      if (unpublished > 0 || doubts.isAnyOpen()) await beat();
      else await publishers.forget(publisherId, 0);
    },
  };
}
