import type { Attempt, DeliveryStatus } from '@posthorn/domain/delivery.ts';
import type { DeliveryRef } from '@posthorn/domain/records/records.ts';
import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { documentsOf } from '../company-documents.ts';
import { toAttemptDocument } from '../deliveries/delivery-documents.ts';
import type { DeliveryDocument, ResendMark } from '../documents.ts';
import { isOfOne, type Resend } from './resends.ts';

/** A delivery that is being sent again, with what a record about it needs. */
export interface MarkedDelivery extends DeliveryRef {
  id: string;
  status: DeliveryStatus;
  mark: ResendMark | null;
}

export interface FinishedResend {
  deliveryId: string;
  attemptNumber: number;
  /** Null when there was nowhere to send it to. */
  attempt: Attempt | null;
  atMs: number;
}

/** The mark on a delivery that asks for one more attempt. It decides whether a record is still wanted. */
export interface ResendMarks {
  /**
   * Marks what is to be sent again of the resend's page and what nobody else is sending again;
   * repeating it changes nothing.
   */
  ask: (resend: Resend) => Promise<void>;
  read: (companyId: string, deliveryIds: readonly string[]) => Promise<MarkedDelivery[]>;
  /** Gives up the marks of a resend that is over, so that another one may have the deliveries. */
  free: (companyId: string, resendId: string, deliveryIds: readonly string[]) => Promise<void>;
  /** For the dispatcher: which attempt of which delivery is asked for. */
  askedNumbers: (deliveryIds: readonly string[]) => Promise<Map<string, number>>;
  /** Records the attempt and settles the mark; a repeat changes nothing. */
  finish: (batch: readonly FinishedResend[]) => Promise<void>;
}

/** Older ones are dropped: an attempt may take 17 KiB with its answer and headers, and a document ends at 16 MiB. */
const MAX_KEPT_ATTEMPTS = 200;

export function createResendMarks(db: mongo.Db): ResendMarks {
  const deliveries = collection(db, 'deliveries');
  return {
    async ask(resend) {
      const { _id: resendId, companyId, page } = resend;
      const attemptNumber = { $add: ['$attemptCount', 1] };
      await deliveries.updateMany(
        {
          _id: { $in: page },
          companyId,
          status: { $in: statusesToSend(resend) },
          'resend.resendId': { $ne: resendId },
          'resend.state': { $ne: 'asked' },
        },
        [{ $set: { resend: { resendId, attemptNumber, state: 'asked' } } }],
      );
    },
    async read(companyId, ids) {
      const found = documentsOf(db, 'deliveries', companyId).find({ _id: { $in: [...ids] } });
      return (await found.project<DeliveryDocument>({ attempts: 0 }).toArray()).map(toMarked);
    },
    async free(companyId, resendId, ids) {
      await documentsOf(db, 'deliveries', companyId).updateMany(
        { _id: { $in: [...ids] }, 'resend.resendId': resendId, 'resend.state': 'asked' },
        { $set: { 'resend.state': 'failed' } },
      );
    },
    async askedNumbers(ids) {
      const found = await deliveries
        .find({ _id: { $in: [...ids] }, 'resend.state': 'asked' })
        .project<{ _id: string; resend: ResendMark }>({ resend: 1 })
        .toArray();
      return new Map(found.map(({ _id, resend }) => [_id, resend.attemptNumber]));
    },
    async finish(batch) {
      await deliveries.bulkWrite(batch.map(finishOf), { ordered: false });
    },
  };
}

/**
 * Whoever names one delivery wants it sent whatever became of it. A span is of failures: what another
 * resend has delivered since the page was noted is left alone.
 */
function statusesToSend(resend: Resend): DeliveryStatus[] {
  return isOfOne(resend) ? ['exhausted', 'cancelled', 'delivered'] : ['exhausted', 'cancelled'];
}

function toMarked(document: DeliveryDocument): MarkedDelivery {
  const { _id, messageId, webhookId, companyId, appId, createdAt, status, resend } = document;
  return {
    id: _id,
    messageId,
    webhookId,
    companyId,
    appId,
    status,
    createdAtMs: createdAt.getTime(),
    mark: resend ?? null,
  };
}

/** Also when the mark was freed while the attempt was under way: what was sent is recorded. */
function isUnrecorded(attemptNumber: number): mongo.Filter<DeliveryDocument> {
  return { $or: [{ 'resend.state': 'asked' }, { attemptCount: { $lt: attemptNumber } }] };
}

/** A failure leaves the status as it was: a resend is not retried (docs: api, resend). */
function finishOf({
  deliveryId: _id,
  attemptNumber,
  attempt,
  atMs,
}: FinishedResend): mongo.AnyBulkWriteOperation<DeliveryDocument> {
  const isDelivered = attempt?.outcome === 'success';
  const state = isDelivered ? ('succeeded' as const) : ('failed' as const);
  return {
    updateOne: {
      filter: {
        _id,
        'resend.attemptNumber': attemptNumber,
        ...(attempt ? isUnrecorded(attemptNumber) : { 'resend.state': 'asked' }),
      },
      update: {
        $set: {
          'resend.state': state,
          updatedAt: new Date(atMs),
          ...(attempt && { attemptCount: attemptNumber }),
          ...(isDelivered && { status: 'delivered', reason: null, nextAttemptAt: null }),
        },
        ...(attempt && {
          $push: { attempts: { $each: [toAttemptDocument(attempt)], $slice: -MAX_KEPT_ATTEMPTS } },
        }),
      },
    },
  };
}
