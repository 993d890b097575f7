import type { mongo } from 'mongoose';
import { collection } from './collections.ts';

/** What a step needs to know of a webhook to which it sends nothing itself. */
export interface WebhookState {
  disabled: boolean;
}

export interface WebhookStates {
  /** By id, of every company; a deleted webhook is missing. Needs no key: nothing sealed is read. */
  statesOf: (webhookIds: readonly string[]) => Promise<Map<string, WebhookState>>;
}

export function createWebhookStates(db: mongo.Db): WebhookStates {
  const webhooks = collection(db, 'webhooks');
  return {
    async statesOf(ids) {
      const found = await webhooks
        .find({ _id: { $in: [...ids] } })
        .project<WebhookState & { _id: string }>({ disabled: 1 })
        .toArray();
      return new Map(found.map(({ _id, disabled }) => [_id, { disabled }]));
    },
  };
}
