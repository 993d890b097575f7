import { settleCancelled, unattemptedDelivery } from '@posthorn/domain/delivery/settlement.ts';
import { CANCELLED_BY_CLIENT } from '@posthorn/domain/delivery/when-cancelled.ts';
import { deliveryIdOf, firstIdAt } from '@posthorn/domain/ids.ts';
import { notStoredOf } from '@posthorn/domain/message.ts';
import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { documentsIn } from '../company-documents.ts';
import type { Database } from '../days/days.ts';
import { readByIds, readUpTo, writeByDays } from '../days/read-days.ts';
import type { MessageDocument, WebhookDocument } from '../documents.ts';
import { cancelUpdate, createDeliveryStore } from '../messages/deliveries.ts';
import { lifetimeIn } from '../messages/messages.ts';

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
    cancelRecorded: (webhook, step) => cancelRecorded(db, webhook, step),
    cancelUnrecorded: (webhook, step) => cancelUnrecorded(db, webhook, step),
    async finish({ webhookId: _id, cancelBeforeMs }) {
      await webhooks.updateOne({ _id, cancelBeforeMs }, { $unset: { isCancelling: '' } });
    },
  };
}

type CancellingDocument = Pick<WebhookDocument, '_id' | 'companyId' | 'cancelBeforeMs'>;

async function cancelRecorded(
  { days: { deliveries } }: Database,
  { webhookId, companyId, cancelBeforeMs }: CancellingWebhook,
  { before, limit, atMs }: CancelStep,
): Promise<CancelledPage> {
  const beforeId = before ?? firstIdAt('dlv', cancelBeforeMs);
  const span = deliveries.kept({ beforeId }, 'dlv');
  const _id = { $gte: span.fromId, $lt: beforeId };
  const found = await readUpTo(deliveries.within(span).reverse(), limit, (documents, left) =>
    documentsIn<'deliveries'>(documents, companyId)
      .find({ webhookId, status: 'pending', _id })
      .sort({ _id: -1 })
      .limit(left)
      .project<{ _id: string; createdAt: Date }>({ createdAt: 1 })
      .toArray(),
  );
  // A replay creates deliveries of old messages, which may be later than the cancellation.
  const older = found.filter(({ createdAt }) => createdAt.getTime() < cancelBeforeMs);
  const changed = await writeByDays(deliveries, older, idOf, (documents, ofDay) =>
    documentsIn<'deliveries'>(documents, companyId).updateMany(
      { _id: { $in: ofDay.map(idOf) }, status: 'pending' },
      cancelUpdate(CANCELLED_BY_CLIENT, atMs),
    ),
  );
  const cancelled = changed.reduce((sum, each) => sum + each, 0);
  return { cancelled, before: found.length < limit ? null : (found.at(-1)?._id ?? null) };
}

const idOf = ({ _id }: { _id: string }): string => _id;

type UnrecordedDocument = Omit<MessageDocument, 'targets' | 'disabledTargets' | 'payload'> & {
  isDisabled: boolean;
};

async function cancelUnrecorded(
  db: Database,
  { webhookId, companyId, cancelBeforeMs }: CancellingWebhook,
  { before, limit, atMs, sinceMs }: CancelStep & { sinceMs: number },
): Promise<CancelledPage> {
  const { messages, deliveries } = db.days;
  const beforeId = before ?? firstIdAt('msg', cancelBeforeMs);
  const span = messages.kept({ fromId: firstIdAt('msg', sinceMs), beforeId }, 'msg');
  const _id = { $gte: span.fromId, $lt: beforeId };
  const disabled = { $ifNull: ['$disabledTargets', []] };
  const found = await readUpTo(messages.within(span).reverse(), limit, (documents, left) =>
    documentsIn<'messages'>(documents, companyId)
      .find({ targets: webhookId, _id })
      .sort({ _id: -1 })
      .limit(left)
      .project<UnrecordedDocument>({
        companyId: 1,
        appId: 1,
        createdAt: 1,
        erasesPayload: 1,
        omitsResponses: 1,
        expiresAt: 1,
        removeAt: 1,
        // A message may have 10,000 targets.
        isDisabled: { $in: [webhookId, disabled] },
      })
      .toArray(),
  );
  const byId = new Map(found.map((each) => [deliveryIdOf(each._id, webhookId), each]));
  const recorded = await readByIds(deliveries, [...byId.keys()], (documents, ofDay) =>
    documents
      .find({ _id: { $in: ofDay } })
      .project<{ _id: string }>({ _id: 1 })
      .toArray(),
  );
  for (const { _id: id } of recorded) byId.delete(id);
  const missing = [...byId.values()].map((each) => cancelledOf(each, webhookId, atMs));
  if (missing.length > 0) await createDeliveryStore(db).insertAll(missing);
  const last = found.length < limit ? null : (found.at(-1)?._id ?? null);
  return { cancelled: missing.length, before: last };
}

/** Of a webhook that was disabled when the message was accepted, the delivery was cancelled before. */
function cancelledOf(message: UnrecordedDocument, webhookId: string, atMs: number) {
  const { _id: id, companyId, appId, createdAt, expiresAt, removeAt, isDisabled } = message;
  const createdAtMs = createdAt.getTime();
  const disabledTargets = new Set(isDisabled ? [webhookId] : []);
  const given = { ...notStoredOf(message), ...lifetimeIn(expiresAt, removeAt) };
  const of = { id, companyId, appId, createdAtMs, disabledTargets, ...given };
  const unattempted = unattemptedDelivery(of, webhookId, atMs);
  if (unattempted.status === 'cancelled') return unattempted;
  const ref = { ...unattempted, deliveryId: unattempted.id };
  return settleCancelled(ref, CANCELLED_BY_CLIENT, atMs);
}
