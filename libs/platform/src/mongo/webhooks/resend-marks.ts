import type { Attempt } from '@posthorn/domain/delivery/delivery.ts';
import { notStoredOf, orderOf } from '@posthorn/domain/message.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import {
  type MarkedDelivery,
  type Resend,
  type ResendMark,
  statusesToResend,
} from '@posthorn/domain/resend.ts';
import type { mongo } from 'mongoose';
import { documentsIn } from '../company-documents.ts';
import type { Database, Days } from '../days/days.ts';
import { readByIds, writeByDays } from '../days/read-days.ts';
import type { DeliveryDocument } from '../documents.ts';
import { toAttemptDocument } from '../messages/deliveries.ts';
import { lifetimeIn } from '../messages/messages.ts';
import { createStatedDeliveries } from '../messages/stated-deliveries.ts';
import type { ResendStore } from './resends.ts';

export interface FinishedResend {
  deliveryId: string;
  attemptNumber: number;
  /** Null when its webhook was deleted or disabled. */
  attempt: Attempt | null;
  /** Milliseconds since 1970. */
  atMs: number;
}

/** The marks on deliveries that ask for one more attempt. They decide whether a resend's record is still valid. */
export interface ResendMarks {
  /**
   * Marks the deliveries of the resend's page that may be sent again and that no other resend is sending, and makes the
   * documents of those that their message states. Repeating it changes nothing.
   */
  ask: (resend: Resend) => Promise<void>;
  read: (companyId: string, deliveryIds: readonly string[]) => Promise<MarkedDelivery[]>;
  /** Ends the marks of a resend that is over, so that another one can have the deliveries. */
  free: (companyId: string, resendId: string, deliveryIds: readonly string[]) => Promise<void>;
  /** The number of the attempt that is asked for, by delivery id, as a majority has stored it. */
  askedNumbers: (deliveryIds: readonly string[]) => Promise<Map<string, number>>;
  /** Records the attempt and settles the mark. Repeating it changes nothing. */
  finish: (batch: readonly FinishedResend[]) => Promise<void>;
}

/** An attempt may take 17 KiB with its response and headers, and a document 16 MiB; older attempts are dropped. */
const MAX_KEPT_ATTEMPTS = 200;

export function createResendMarks(db: Pick<Database, 'days'>): ResendMarks {
  const { deliveries } = db.days;
  const stated = createStatedDeliveries(db);
  return {
    async ask(resend) {
      await stated.record(resend);
      await ask(deliveries, resend);
    },
    async read(companyId, ids) {
      const found = await readByIds(deliveries, ids, (documents, ofDay) =>
        documentsIn<'deliveries'>(documents, companyId)
          .find({ _id: { $in: ofDay } })
          .project<DeliveryDocument>({ attempts: 0 })
          .toArray(),
      );
      return found.map(toMarked);
    },
    async free(companyId, resendId, ids) {
      await writeByDays(deliveries, ids, itself, (documents, ofDay) =>
        documentsIn<'deliveries'>(documents, companyId).updateMany(
          { _id: { $in: [...ofDay] }, 'resend.resendId': resendId, 'resend.state': 'asked' },
          { $set: { 'resend.state': 'failed' } },
        ),
      );
    },
    async askedNumbers(ids) {
      const found = await readByIds(deliveries, ids, (documents, ofDay) =>
        documents
          .find(
            { _id: { $in: ofDay }, 'resend.state': 'asked' },
            // A write that only the primary has may be rolled back.
            { readConcern: { level: 'majority' } },
          )
          .project<{ _id: string; resend: ResendMark }>({ resend: 1 })
          .toArray(),
      );
      return new Map(found.map(({ _id, resend }) => [_id, resend.attemptNumber]));
    },
    async finish(batch) {
      const idOf = ({ deliveryId }: FinishedResend): string => deliveryId;
      await writeByDays(deliveries, batch, idOf, (documents, ofDay) =>
        documents.bulkWrite(ofDay.map(finishOf), { ordered: false }),
      );
    },
  };
}

const itself = (id: string): string => id;

async function ask(deliveries: Days['deliveries'], resend: Resend): Promise<void> {
  const { id: resendId, companyId, page } = resend;
  const attemptNumber = { $add: ['$attemptCount', 1] };
  await writeByDays(deliveries, page, itself, (documents, ofDay) =>
    documents.updateMany(
      {
        _id: { $in: [...ofDay] },
        companyId,
        status: { $in: [...statusesToResend(resend)] },
        'resend.resendId': { $ne: resendId },
        'resend.state': { $ne: 'asked' },
      },
      [{ $set: { resend: { resendId, attemptNumber, state: 'asked' } } }],
    ),
  );
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
    attemptCount: document.attemptCount,
    createdAtMs: createdAt.getTime(),
    mark: resend ?? null,
    ...notStoredOf(document),
    ...lifetimeIn(document.expiresAt, document.removeAt),
    ...orderOf(document),
  };
}

/** Also true of a mark that was freed while its attempt was made: what was sent is recorded. */
function isUnrecorded(attemptNumber: number): mongo.Filter<DeliveryDocument> {
  return { $or: [{ 'resend.state': 'asked' }, { attemptCount: { $lt: attemptNumber } }] };
}

/** A failure leaves the status unchanged: a resend is not retried (docs/contract.md C11.2). */
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

interface OrphanDeps {
  resends: Pick<ResendStore, 'findOne'>;
  marks: Pick<ResendMarks, 'free'>;
}

/**
 * Frees deliveries whose mark belongs to a resend that is over: a crash between the end of a resend
 * and the end of its marks would keep them for ever. Returns true when it freed any.
 */
export async function freeOrphans(
  { resends, marks }: OrphanDeps,
  deliveries: readonly MarkedDelivery[],
): Promise<boolean> {
  const asked = deliveries.flatMap(({ id, companyId, mark }) =>
    mark?.state === 'asked' ? [{ id, companyId, resendId: mark.resendId }] : [],
  );
  let isFreed = false;
  for (const [resendId, marked] of Map.groupBy(asked, (each) => each.resendId)) {
    const { companyId } = requiredAt(marked, 0, 'delivery of the resend');
    const owner = await resends.findOne(companyId, resendId);
    if (owner?.status === 'running') continue;
    const ids = marked.map(({ id }) => id);
    await marks.free(companyId, resendId, ids);
    isFreed = true;
  }
  return isFreed;
}
