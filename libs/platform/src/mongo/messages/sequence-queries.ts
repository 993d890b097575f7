import type { Sequence } from '@posthorn/domain/delivery/sequence.ts';
import { documentsIn, documentsOf } from '../company-documents.ts';
import { POSITION_KEY } from '../days/day-collections.ts';
import type { Database } from '../days/days.ts';
import { countUpTo, readAll, readByIds } from '../days/read-days.ts';
import type { DeliveryDocument } from '../documents.ts';
import { planOf } from './deliveries.ts';
import {
  behind,
  dueUpdate,
  idOfPlace,
  type SequencePlace,
  type SequencePosition,
  toSequence,
} from './sequences.ts';

/** A sequence as the API shows it. Times are in milliseconds since 1970. */
export interface ListedSequence {
  id: string;
  orderingKey: string;
  state: 'blocked' | 'waiting';
  headDeliveryId: string;
  headMessageId: string;
  headStatus: 'pending' | 'exhausted';
  nextAttemptAtMs: number | null;
  /** How many deliveries wait behind the head, counted up to 1,000. */
  waiting: number;
  sinceMs: number;
}

type WebhookPlace = Pick<Sequence, 'companyId' | 'webhookId'>;

interface SequencePage {
  state: ListedSequence['state'];
  after?: SequencePosition | undefined;
  limit: number;
}

/** What the API shows and changes of the ordering keys of a webhook. */
export interface SequenceQueries {
  /**
   * Its keys in this state, the oldest first, and where the next page begins; null behind the last one. A page may be
   * shorter than its limit: the head of a key may have ended while nothing has gone on behind it yet.
   */
  list: (
    webhook: WebhookPlace,
    page: SequencePage,
  ) => Promise<{ listed: ListedSequence[]; next: SequencePosition | null }>;
  /** Null for a key whose deliveries follow each other in memory, or for which nothing waits. */
  find: (place: SequencePlace) => Promise<ListedSequence | null>;
  /** Counts the blocked keys of a webhook up to `limit`. */
  countBlocked: (webhook: WebhookPlace, limit: number) => Promise<number>;
  /** Goes on behind the exhausted head. Returns false unless this delivery is the head of a blocked key. */
  skip: (place: SequencePlace, deliveryId: string, nowMs: number) => Promise<boolean>;
}

/** Followers of a key that are counted. */
const COUNTED = 1_000;

export function createSequenceQueries(db: Database): SequenceQueries {
  const own = (companyId: string) => documentsOf(db, 'sequences', companyId);
  const showAll = async (found: readonly Sequence[]): Promise<ListedSequence[]> => {
    const heads = await findHeads(db, found);
    const shown = await readAll(found, (each) => show(db, each, heads.get(each.head.deliveryId)));
    return shown.flatMap((each) => each ?? []);
  };
  return {
    async list({ companyId, webhookId }, { state, after, limit }) {
      const filter = { webhookId, isBlocked: state === 'blocked', ...behind(after) };
      const found = own(companyId).find(filter).sort({ since: 1, _id: 1 }).limit(limit);
      const page = (await found.toArray()).map(toSequence);
      const last = page.length === limit ? page.at(-1) : undefined;
      return { listed: await showAll(page), next: last ?? null };
    },
    async find(place) {
      const found = await own(place.companyId).findOne({ _id: idOfPlace(place) });
      return found ? ((await showAll([toSequence(found)]))[0] ?? null) : null;
    },
    countBlocked: ({ companyId, webhookId }, limit) =>
      own(companyId).count({ webhookId, isBlocked: true }, { limit }),
    async skip(place, deliveryId, nowMs) {
      const { $set, ...due } = dueUpdate(nowMs);
      const skipped = await own(place.companyId).updateOne(
        { _id: idOfPlace(place), isBlocked: true, 'head.deliveryId': deliveryId },
        { ...due, $set: { ...$set, isBlocked: false, 'head.isSkipped': true } },
      );
      return skipped !== null;
    },
  };
}

type HeadDocument = Pick<DeliveryDocument, '_id' | 'status' | 'nextAttemptAt' | 'waiting'>;

async function findHeads(
  { days: { deliveries } }: Database,
  sequences: readonly Sequence[],
): Promise<Map<string, HeadDocument>> {
  const ids = sequences.map(({ head }) => head.deliveryId);
  const found = await readByIds(deliveries, ids, (documents, ofDay) =>
    documents
      .find({ _id: { $in: ofDay } })
      .project<HeadDocument>({ status: 1, nextAttemptAt: 1, waiting: 1 })
      .toArray(),
  );
  return new Map(found.map((document) => [document._id, document]));
}

/** Null for a sequence whose head has ended. */
async function show(
  db: Database,
  sequence: Sequence,
  head: HeadDocument | undefined,
): Promise<ListedSequence | null> {
  const { id, orderingKey, isBlocked, sinceMs } = sequence;
  const { deliveryId: headDeliveryId, messageId: headMessageId } = sequence.head;
  const headStatus = head?.status ?? 'pending';
  if (headStatus !== 'pending' && !(headStatus === 'exhausted' && isBlocked)) return null;
  return {
    id,
    orderingKey,
    state: isBlocked ? 'blocked' : 'waiting',
    headDeliveryId,
    headMessageId,
    headStatus,
    nextAttemptAtMs: head && !isBlocked ? planOf(head).nextAttemptAtMs : null,
    waiting: await countFollowers(db, sequence),
    sinceMs,
  };
}

async function countFollowers(
  { days: { deliveries } }: Database,
  { companyId, webhookId, orderingKey, head, fromId }: Sequence,
): Promise<number> {
  const days = deliveries.within(deliveries.kept({ fromId }, 'dlv'));
  const behindHead = {
    webhookId,
    orderingKey,
    status: 'pending' as const,
    position: { $gt: head.position },
  };
  const { sum } = await countUpTo(days, COUNTED, (documents, left) =>
    documentsIn<'deliveries'>(documents, companyId).count(behindHead, {
      limit: left,
      hint: POSITION_KEY,
    }),
  );
  return sum;
}
