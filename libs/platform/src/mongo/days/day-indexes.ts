import type { DayKind } from './days.ts';
import type { IndexSpec } from '../indexes.ts';

const NOT_DELIVERED = { status: { $in: ['pending', 'exhausted', 'cancelled'] } };

type DayIndex = Omit<IndexSpec, 'collection'>;

/** The indexes of messages and deliveries, in the collection of each day. */
export const DAY_INDEXES: Record<DayKind, readonly DayIndex[]> = {
  messages: [
    // Lists, newest first: messages of a company, of an app, to a webhook.
    { key: { companyId: 1, _id: 1 } },
    { key: { appId: 1, _id: 1 } },
    { key: { targets: 1, _id: 1 } },
    // One message for each idempotency key; messages without a key are not in the index.
    {
      key: { companyId: 1, 'idempotency.key': 1 },
      options: {
        unique: true,
        partialFilterExpression: { 'idempotency.key': { $exists: true } },
      },
    },
  ],
  deliveries: [
    // Failed and pending deliveries by webhook: resends, cancelling, health. Delivered ones, nearly all, are not in the
    // index.
    {
      key: { companyId: 1, webhookId: 1, status: 1, _id: 1 },
      options: { partialFilterExpression: NOT_DELIVERED },
    },
    // The same by message: the list of messages that failed.
    {
      key: { companyId: 1, status: 1, messageId: 1 },
      options: { partialFilterExpression: NOT_DELIVERED },
    },
    // Overdue deliveries, for the sweep. A delivery that succeeds at once is never in the index.
    {
      key: { nextAttemptAt: 1, updatedAt: 1 },
      options: { partialFilterExpression: { status: 'pending' } },
    },
  ],
};
