import type { mongo } from 'mongoose';
import { collection } from '../documents/collections.ts';
import type { WebhookDocument } from '../documents/documents.ts';

/** What a service has to know of a webhook to which it sends nothing. */
export interface WebhookState {
  disabled: boolean;
  hasRateLimit: boolean;
  /** When it was last marked as deferred, in milliseconds since 1970; null if never. */
  deferredAtMs: number | null;
}

export interface WebhookStates {
  /** By id, of every company. Deleted webhooks are missing. Needs no encryption key: it reads nothing sealed. */
  statesOf: (webhookIds: readonly string[]) => Promise<Map<string, WebhookState>>;
  /** Stores that these webhooks had an old backlog at `atMs` (since 1970) that waits for its endpoint. */
  markDeferred: (webhookIds: readonly string[], atMs: number) => Promise<void>;
}

const STATE = { disabled: 1, rateLimitPerSecond: 1, deferredAt: 1 } as const;

type StateDocument = Pick<
  WebhookDocument,
  '_id' | 'disabled' | 'rateLimitPerSecond' | 'deferredAt'
>;

export function createWebhookStates(db: mongo.Db): WebhookStates {
  const webhooks = collection(db, 'webhooks');
  return {
    async statesOf(ids) {
      const found = await webhooks
        .find({ _id: { $in: [...ids] } })
        .project<StateDocument>(STATE)
        .toArray();
      return new Map(
        found.map(({ _id, disabled, rateLimitPerSecond, deferredAt }) => [
          _id,
          {
            disabled,
            hasRateLimit: rateLimitPerSecond !== null,
            deferredAtMs: deferredAt?.getTime() ?? null,
          },
        ]),
      );
    },
    async markDeferred(ids, atMs) {
      // Not `updatedAt`: it is the version of what a client has set.
      const deferredAt = new Date(atMs);
      await webhooks.updateMany({ _id: { $in: [...ids] } }, { $set: { deferredAt } });
    },
  };
}
