import { factsOf, matches } from '@posthorn/domain/filter.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { ReplayStore } from '@posthorn/platform/mongo/messages/replays.ts';

/** A message to an app, as a replay sees it. */
export interface MemoryMessage {
  id: string;
  eventType: string | null;
  /** Its webhooks, those of replays included. */
  targets: string[];
  isErased?: true;
  /** `{}` when it is left out. */
  payload?: string;
}

export interface MemoryReplays {
  replays: ReplayStore;
  /** Oldest first. */
  messages: MemoryMessage[];
  /** The attempts of each delivery that a replay has recorded, by its id. */
  attempts: Map<string, number>;
}

/** What replays change, in memory. */
export function createMemoryReplays(): MemoryReplays {
  const messages: MemoryMessage[] = [];
  const attempts = new Map<string, number>();
  const refOf = (messageId: string, webhookId: string, companyId: string, createdAtMs: number) => {
    const deliveryId = deliveryIdOf(messageId, webhookId);
    return { deliveryId, messageId, webhookId, companyId, appId: 'app_1', createdAtMs };
  };
  return {
    messages,
    attempts,
    replays: {
      findMissing({ webhookId, afterId, beforeId }, wants, limit) {
        const span = messages.filter(({ id }) => id > afterId && id < beforeId);
        const page = span.slice(0, limit);
        const missing = page.filter(
          ({ eventType, targets }) => !targets.includes(webhookId) && wants(eventType),
        );
        const readTo = page.length < limit ? null : (page.at(-1)?.id ?? null);
        const erased = missing.filter(({ isErased }) => isErased).length;
        return Promise.resolve({ ids: missing.map(({ id }) => id), erased, readTo });
      },
      findPassing(_companyId, ids, filter) {
        const passing = messages.filter(({ payload = '{}', eventType, isErased }) => {
          return isErased ?? matches(filter, factsOf({ payload, eventType })).matches;
        });
        const wanted = new Set(passing.map(({ id }) => id));
        return Promise.resolve(ids.filter((id) => wanted.has(id)));
      },
      add({ companyId, webhookId, messageIds, createdAtMs }) {
        const wanted = messages.filter(({ id, isErased }) => messageIds.includes(id) && !isErased);
        for (const { targets } of wanted) if (!targets.includes(webhookId)) targets.push(webhookId);
        const added = wanted.map(({ id }) => refOf(id, webhookId, companyId, createdAtMs));
        for (const { deliveryId } of added) {
          if (!attempts.has(deliveryId)) attempts.set(deliveryId, 0);
        }
        return Promise.resolve(added);
      },
      unattempted: (ids) => Promise.resolve(ids.filter((id) => attempts.get(id) === 0)),
    },
  };
}
