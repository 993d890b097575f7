import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import type { Database } from '../days/days.ts';
import type { WebhookDocument } from '../documents.ts';
import { createDeliveryStore } from '../messages/deliveries.ts';
import {
  cancelledByClient,
  createSelectedDeliveries,
  type SelectedDeliveries,
  type Selection,
} from '../messages/selected-deliveries.ts';

/** A webhook whose pending deliveries from before a time are cancelled, and not all of them stored so. */
export interface CancellingWebhook {
  webhookId: string;
  companyId: string;
  /** Milliseconds since 1970. */
  cancelBeforeMs: number;
}

/** One page of a pass over the deliveries of a webhook, newest first. */
export interface CancelledPage {
  /** How many deliveries this page has stored as cancelled. */
  cancelled: number;
  /** Where the next page begins; null when none is left. */
  before: string | null;
}

/** The bounds of a page, and where it begins. */
export interface CancelStep {
  /** `before` of the page before; undefined for the first page. */
  before: string | undefined;
  limit: number;
  atMs: number;
}

/**
 * Stores the cancellations that a client has asked for. A page changes a delivery only while it is pending, so each may
 * be repeated. The newest come first, as in lists: these are right while a million older ones are still to come.
 */
export interface CancellationStore {
  /** Those of the next company after `afterCompanyId` that has any besides `exceptIds`, at most `limit`; none behind the last. */
  nextCancelling: (of: {
    afterCompanyId: string;
    exceptIds: readonly string[];
    limit: number;
  }) => Promise<CancellingWebhook[]>;
  /** Reads the webhooks that are still to be cancelled, as they are now. */
  read: (webhookIds: readonly string[]) => Promise<CancellingWebhook[]>;
  /** Cancels recorded deliveries. */
  cancelRecorded: (webhook: CancellingWebhook, step: CancelStep) => Promise<CancelledPage>;
  /**
   * Records the deliveries of messages that were not attempted yet as cancelled, down to messages from `sinceMs`, before
   * which the sweep has recorded every delivery.
   */
  cancelUnrecorded: (
    webhook: CancellingWebhook,
    step: CancelStep & { sinceMs: number },
  ) => Promise<CancelledPage>;
  /** Ends the pass over a webhook, unless a client has asked for a later time meanwhile. */
  finish: (webhook: CancellingWebhook) => Promise<void>;
}

export function createCancellationStore(db: Database): CancellationStore {
  const webhooks = collection(db, 'webhooks');
  const selected = createSelectedDeliveries(db);
  const find = async (
    filter: mongo.Filter<WebhookDocument>,
    limit: number,
  ): Promise<CancellingWebhook[]> => {
    const found = webhooks.find({ isCancelling: true, ...filter }).sort({ companyId: 1 });
    const fields = { companyId: 1, cancelBeforeMs: 1 } as const;
    const documents = await found.limit(limit).project<CancellingDocument>(fields).toArray();
    return documents.map(({ _id: webhookId, companyId, cancelBeforeMs }) => ({
      webhookId,
      companyId,
      cancelBeforeMs: cancelBeforeMs ?? 0,
    }));
  };
  return {
    async nextCancelling({ afterCompanyId, exceptIds, limit }) {
      const others = { _id: { $nin: [...exceptIds] } };
      const [next] = await find({ ...others, companyId: { $gt: afterCompanyId } }, 1);
      return next ? find({ ...others, companyId: next.companyId }, limit) : [];
    },
    read: (ids) => find({ _id: { $in: [...ids] } }, ids.length),
    cancelRecorded: (webhook, step) => cancelRecorded(selected, webhook, step),
    cancelUnrecorded: (webhook, step) => cancelUnrecorded(db, selected, webhook, step),
    async finish({ webhookId: _id, cancelBeforeMs }) {
      await webhooks.updateOne({ _id, cancelBeforeMs }, { $unset: { isCancelling: '' } });
    },
  };
}

type CancellingDocument = Pick<WebhookDocument, '_id' | 'companyId' | 'cancelBeforeMs'>;

/** The deliveries to the webhook that are cancelled. */
function selectionOf({ webhookId, companyId, cancelBeforeMs }: CancellingWebhook): Selection {
  return { companyId, filter: { webhookId }, beforeMs: cancelBeforeMs };
}

async function cancelRecorded(
  selected: SelectedDeliveries,
  webhook: CancellingWebhook,
  { atMs, ...step }: CancelStep,
): Promise<CancelledPage> {
  const { found, before } = await selected.recorded(selectionOf(webhook), 'pending', step);
  const ids = found.map(({ id }) => id);
  return { cancelled: await selected.cancel(webhook.companyId, ids, atMs), before };
}

async function cancelUnrecorded(
  db: Database,
  selected: SelectedDeliveries,
  webhook: CancellingWebhook,
  step: CancelStep & { sinceMs: number },
): Promise<CancelledPage> {
  const { found, before } = await selected.unrecorded(selectionOf(webhook), step);
  const missing = found.map((each) => cancelledByClient(each, step.atMs));
  if (missing.length > 0) await createDeliveryStore(db).insertAll(missing);
  return { cancelled: missing.length, before };
}
