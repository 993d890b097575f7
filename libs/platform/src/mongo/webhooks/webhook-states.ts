import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import type { WebhookDocument } from '../documents.ts';

/** What a service has to know of a webhook to which it sends nothing. */
export interface WebhookState {
  disabled: boolean;
  hasRateLimit: boolean;
}

export interface WebhookStates {
  /** By id, of every company. Deleted webhooks are missing. Needs no encryption key: it reads nothing sealed. */
  statesOf: (webhookIds: readonly string[]) => Promise<Map<string, WebhookState>>;
}

const STATE = { disabled: 1, rateLimitPerSecond: 1 } as const;

export function createWebhookStates(db: mongo.Db): WebhookStates {
  const webhooks = collection(db, 'webhooks');
  return {
    async statesOf(ids) {
      const found = await webhooks
        .find({ _id: { $in: [...ids] } })
        .project<Pick<WebhookDocument, '_id' | 'disabled' | 'rateLimitPerSecond'>>(STATE)
        .toArray();
      return new Map(
        found.map(({ _id, disabled, rateLimitPerSecond }) => [
          _id,
          { disabled, hasRateLimit: rateLimitPerSecond !== null },
        ]),
      );
    },
  };
}
