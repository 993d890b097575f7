import { forAttempts, type Message } from '@posthorn/domain/message.ts';
import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import { isOutage } from '@posthorn/platform/async/keep-trying.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { createShares } from '@posthorn/platform/memory/memory-budgets.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import type {
  PublisherProgress,
  PublisherStore,
} from '@posthorn/platform/mongo/messages/publishers.ts';
import { publishInBatches } from '@posthorn/platform/records/created-records.ts';
import { overloaded, unavailable } from '../api-error.ts';
import type { PublicationWait } from './publication-waits.ts';

/** A stored message, by which its publisher is found. */
export type StoredMessage = Pick<Message, 'id' | 'companyId' | 'publisherId'>;

interface PublishAgainDeps {
  topic: string;
  records: Pick<RecordLog, 'publish'>;
  messages: Pick<MessageStore, 'findCommitted'>;
  publishers: Pick<PublisherStore, 'progressOf'>;
}

interface Asked extends StoredMessage {
  /** The request does not wait any more. */
  isGivenUp: boolean;
}

/** Messages of one batch: 5 MB of the largest payloads. */
const AT_ONCE = 20;
/** Messages of all companies that wait. */
const MOST_WAITING = 1_000;

/**
 * Returns a function that publishes the records of a message whose publisher is not known to have done so. Its gateway may
 * have died, or Kafka was away from it: the copies that it or the sweep publishes are harmless, in whatever order (decision
 * 16). The messages of a company are published in the order of the calls. Rejects with ApiError 503 while Kafka is away, and
 * when the company has too many that wait.
 */
export function createPublishAgain(
  deps: PublishAgainDeps,
): (message: StoredMessage) => PublicationWait {
  const shares = createShares(MOST_WAITING);
  const batcher = createBatcher<Asked, null>({
    maxItems: AT_ONCE,
    lingerMs: 0,
    maxInFlight: 1,
    keyOf: ({ companyId }) => companyId,
    async run(batch) {
      await publishAll(
        deps,
        batch.filter(({ isGivenUp }) => !isGivenUp),
      );
      return batch.map(() => null);
    },
  });

  async function publish(asked: Asked): Promise<void> {
    if (!shares.hasRoom(asked.companyId, 1)) throw overloaded();
    shares.add(asked.companyId, 1);
    try {
      await batcher.add(asked);
    } finally {
      shares.remove(asked.companyId, 1);
    }
  }

  return ({ id, companyId, publisherId }) => {
    const asked = { id, companyId, publisherId, isGivenUp: false };
    const published = publish(asked);
    published.catch(() => undefined);
    return { published, giveUp: () => void (asked.isGivenUp = true) };
  };
}

async function publishAll(
  { topic, records, messages, publishers }: PublishAgainDeps,
  asked: readonly Asked[],
): Promise<void> {
  if (asked.length === 0) return;
  const progress = await publishers.progressOf([...new Set(asked.map((each) => each.publisherId))]);
  const left = asked.filter(({ id, publisherId }) => !isPublished(id, progress.get(publisherId)));
  const found = await messages.findCommitted(left.map(({ id }) => id));
  const byId = new Map(found.map((message) => [message.id, message]));
  const inOrder = left.flatMap(({ id }) => byId.get(id) ?? []);
  try {
    await publishInBatches(records, topic, inOrder.map(forAttempts));
  } catch (error) {
    throw isOutage(error) ? unavailable('kafka_unavailable') : error;
  }
}

/** A publisher without progress is gone: everything that it has stored is published. */
function isPublished(id: string, progress: PublisherProgress | undefined): boolean {
  return !progress || id <= progress.watermark || id <= progress.sweptTo;
}
