import type { DeliveryStatus } from '@posthorn/domain/delivery/delivery.ts';
import { createIdFactory, deliveryIdOf } from '@posthorn/domain/ids.ts';
import { charsOfMessage, type Message } from '@posthorn/domain/message.ts';
import type { DeliveryOutline } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import type { ListDeps } from '../../../services/gateway/src/history/messages.ts';
import { sampleMessage } from '../samples/sample-message.ts';

export const START_MS = 1_700_000_000_000;

/** A message with its deliveries. */
export interface Stored {
  message: Message;
  known: (DeliveryOutline & { messageId: string })[];
}

/** The statuses of the deliveries of a message; `none` is a delivery without a document. */
export type Shape = readonly (DeliveryStatus | 'none')[];

/** Creates a message of each shape. Pairs of messages have the same creation time. */
export function storeMessages(shapes: readonly Shape[]): Stored[] {
  let made = 0;
  const nowMs = (): number => START_MS + Math.floor((made += 1) / 2);
  const newId = createIdFactory({ nowMs, randomBytes: (size) => Buffer.alloc(size) });
  return shapes.map((shape, n) => {
    const targets = shape.map((_, index) => `wh_${index}`);
    const appId = n % 3 === 0 ? 'app_1' : null;
    const eventType = n % 4 === 0 ? 'order.paid' : null;
    const tags = n % 2 === 0 ? ['even', 'all'] : [];
    const message = sampleMessage(newId('msg'), {
      targets,
      appId,
      eventType,
      ...(tags.length > 0 && { tags }),
      ...(n % 3 === 1 && { externalId: 'own' }),
    });
    const known = shape.flatMap((status, index) => {
      const webhookId = `wh_${index}`;
      const id = deliveryIdOf(message.id, webhookId);
      const own = { id, messageId: message.id, webhookId };
      return status === 'none'
        ? []
        : [{ ...own, status, attemptCount: 1, createdAtMs: message.createdAtMs, updatedAtMs: 1 }];
    });
    return { message, known };
  });
}

export const descending = (a: string, b: string): number => (a < b ? 1 : -1);

/** Returns the two stores in memory. `reads` counts the entries that were read, and the ids of requested deliveries. */
export function listDepsOf(
  stored: readonly Stored[],
  reads = { count: 0, deliveries: 0 },
): ListDeps {
  const all = stored.map(({ message }) => message);
  const known = stored.flatMap((each) => each.known);
  const within = (id: string, { fromId, beforeId }: { fromId?: string; beforeId?: string }) =>
    (fromId === undefined || id >= fromId) && (beforeId === undefined || id < beforeId);
  const read = <T>(found: T[]): Promise<T[]> => {
    reads.count += found.length;
    return Promise.resolve(found);
  };
  const newestFirst = (found: Message[], maxTargets: number): Message[] =>
    upTo(
      maxTargets,
      found.sort((a, b) => descending(a.id, b.id)),
    );
  return {
    nextSlice: () => Promise.resolve(),
    webhooks: {
      cancelBeforeOf: () => Promise.resolve(new Map()),
      isCancelling: () => Promise.resolve(false),
    },
    messages: {
      listOutlines: (
        _company,
        { appId, webhookId, tag, externalId, ...range },
        { messages, targets },
      ) =>
        read(
          newestFirst(
            all
              .filter(({ id }) => within(id, range as { fromId?: string }))
              .filter((each) => appId === undefined || each.appId === appId)
              .filter((each) => webhookId === undefined || each.targets.includes(webhookId))
              .filter((each) => tag === undefined || each.tags?.includes(tag))
              .filter((each) => externalId === undefined || each.externalId === externalId),
            targets,
          ).slice(0, messages),
        ),
      outlinesOf: (_company, ids, maxTargets) =>
        Promise.resolve(newestFirst(withIds(all, ids), maxTargets)),
      findMany: (_company, ids, maxChars) =>
        Promise.resolve(upToChars(maxChars, newestFirst(withIds(all, ids), Infinity))),
    },
    deliveries: {
      outlinesOf: (_company, ids) => {
        reads.deliveries += ids.length;
        return Promise.resolve(withIds(known, ids));
      },
      messagesOfFailed: (_company, { status, ...range }, limit) =>
        read(
          known
            .filter((each) => each.status === status)
            .filter(({ messageId }) => within(messageId, range as { fromId?: string }))
            .map(({ messageId }) => messageId)
            .sort(descending)
            .slice(0, limit),
        ),
    },
  };
}

function withIds<T extends { id: string }>(all: readonly T[], ids: readonly string[]): T[] {
  const wanted = new Set(ids);
  return all.filter(({ id }) => wanted.has(id));
}

/** Returns the messages up to and including the one that reaches the limit, like the real store. */
function upToChars(maxChars: number, found: readonly Message[]): Message[] {
  let chars = 0;
  const isWithin = (message: Message): boolean => {
    const isBelow = chars < maxChars;
    chars += charsOfMessage(message);
    return isBelow;
  };
  return found.filter(isWithin);
}

function upTo(maxTargets: number, found: readonly Message[]): Message[] {
  let targets = 0;
  const isWithin = (each: Message): boolean => {
    const isBelow = targets < maxTargets;
    targets += each.targets.length;
    return isBelow;
  };
  return found.filter(isWithin);
}
