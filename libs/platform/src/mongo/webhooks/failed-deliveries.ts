import { statusesOf, storedReasonOf } from '@posthorn/domain/delivery/delivery-filter.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import { FAILED_STATUSES, type Resend, type ResendFilter } from '@posthorn/domain/resend.ts';
import type { mongo } from 'mongoose';
import { documentsIn, documentsOf } from '../company-documents.ts';
import type { Database } from '../days/days.ts';
import { countUpTo, readUpTo } from '../days/read-days.ts';
import type { DeliveryDocument } from '../documents.ts';
import { createMessageQueries } from '../messages/message-queries.ts';

/** The failed deliveries that resends send again (resends.ts), and the webhooks that may have some. */

interface Span {
  /** Exclusive, as `beforeId` is. */
  afterId: string;
  beforeId: string;
}

/**
 * The failed deliveries that are still to be sent, of one status: the partial index of failures
 * serves a single status, while a list that is shorter than the index's own makes the planner read
 * every delivery of the time span (MongoDB 7.0).
 */
function remaining(
  webhookId: string | { $in: string[] },
  { afterId, beforeId }: Span,
  status: FailedStatus,
  filter: ResendFilter | null,
) {
  const reason = filter ? storedReasonOf(filter) : undefined;
  return {
    webhookId,
    status,
    _id: { $gt: afterId, $lt: beforeId },
    ...(reason !== undefined && { reason }),
    ...(filter?.appId !== undefined && { appId: filter.appId }),
  };
}

type FailedStatus = (typeof FAILED_STATUSES)[number];

function failedStatuses({ filter }: Resend): readonly FailedStatus[] {
  const wanted: readonly string[] = statusesOf(filter ?? {});
  return FAILED_STATUSES.filter((status) => wanted.includes(status));
}

/** No index has the outcome, so each failed delivery is read. A count would read all of them at once, a page does not. */
function withLastOutcome(outcome: Resend['outcome']) {
  return outcome !== null && { $expr: { $eq: [{ $last: '$attempts.outcome' }, outcome] } };
}

/** See `count` of ResendStore. */
export async function countRemaining(
  db: Database,
  resend: Resend,
  mostCounted: number,
): Promise<number> {
  if (resend.filter?.eventType !== undefined && resend.webhookId !== null) {
    return countOfType(db, resend, mostCounted);
  }
  const webhookId = resend.webhookId ?? { $in: await enabledWebhooks(db, resend) };
  const { span, days } = spanOf(db, resend);
  const { sum } = await countUpTo(days, mostCounted, async (documents, limit) => {
    const own = documentsIn<'deliveries'>(documents, resend.companyId);
    const counts = failedStatuses(resend).map((status) =>
      own.count(remaining(webhookId, span, status, resend.filter), { limit }),
    );
    return (await Promise.all(counts)).reduce((all, each) => all + each, 0);
  });
  return sum;
}

/** Deliveries have no event type: their messages are read. */
async function countOfType(db: Database, resend: Resend, mostCounted: number): Promise<number> {
  let sum = 0;
  for (let { afterId } = resend; sum < mostCounted;) {
    const page = await nextPage(db, { ...resend, afterId }, CHUNK);
    sum += page.length;
    const last = page.at(-1);
    if (last === undefined || page.length < CHUNK) break;
    afterId = last;
  }
  return Math.min(sum, mostCounted);
}

/** Where the deliveries of the resend are that have not expired, with their days, the oldest first. */
function spanOf({ days: { deliveries } }: Database, { afterId, beforeId }: Resend) {
  const { fromId } = deliveries.kept({ fromId: afterId }, 'dlv');
  const span: Span = { afterId: fromId, beforeId };
  return { span, days: deliveries.within({ fromId, beforeId }) };
}

/** Failed deliveries that are read at a time to find those of an event type. */
const CHUNK = 500;

/** See `nextPage` of ResendStore. */
export async function nextPage(db: Database, resend: Resend, limit: number): Promise<string[]> {
  const eventType = resend.filter?.eventType;
  if (resend.webhookId === null) return [];
  if (eventType === undefined) return (await readFailed(db, resend, limit)).map(idOf);
  const { eventTypesOf } = createMessageQueries(db);
  const ids: string[] = [];
  for (let { afterId } = resend; ;) {
    const read = await readFailed(db, { ...resend, afterId }, CHUNK);
    const messageIds = read.map(({ messageId }) => messageId);
    const types = await eventTypesOf(resend.companyId, messageIds);
    ids.push(...read.filter(({ messageId }) => types.get(messageId) === eventType).map(idOf));
    const last = read.at(-1);
    if (last === undefined || read.length < CHUNK || ids.length >= limit) break;
    afterId = last._id;
  }
  return ids.slice(0, limit);
}

type FailedDocument = Pick<DeliveryDocument, '_id' | 'messageId'>;

const idOf = ({ _id }: { _id: string }): string => _id;

/** The next failed deliveries of a webhook, oldest first, of any event type. */
function readFailed(db: Database, resend: Resend, limit: number): Promise<FailedDocument[]> {
  const { companyId, webhookId, outcome, filter } = resend;
  if (webhookId === null) throw new ImpossibleError(`resend ${resend.id} has its pages in parts`);
  const { span, days } = spanOf(db, resend);
  return readUpTo(days, limit, async (documents, left) => {
    const own = documentsIn<'deliveries'>(documents, companyId);
    const pages = failedStatuses(resend).map((status) => {
      const found = own
        .find({ ...remaining(webhookId, span, status, filter), ...withLastOutcome(outcome) })
        .sort({ _id: 1 })
        .limit(left);
      return found.project<FailedDocument>({ messageId: 1 }).toArray();
    });
    const read = (await Promise.all(pages)).flat();
    return read.sort((a, b) => (a._id < b._id ? -1 : 1)).slice(0, left);
  });
}

/** To decode 10,000 at once takes 20 ms of CPU time. */
const IDS_OF_A_BATCH = 1_000;

/** The ids of the enabled webhooks of an app's or a company's resend. A limit of 0 means no limit. */
export async function enabledWebhooks(
  db: mongo.Db,
  { id, companyId, appId, webhookId }: Resend,
  { afterId, limit } = { afterId: '', limit: 0 },
): Promise<string[]> {
  if (webhookId !== null) throw new ImpossibleError(`resend ${id} is of one webhook`);
  const ofApp = appId === null ? {} : { appId };
  const found = documentsOf(db, 'webhooks', companyId)
    .find({ ...ofApp, disabled: false, _id: { $gt: afterId } })
    .sort({ _id: 1 })
    .limit(limit)
    .batchSize(IDS_OF_A_BATCH);
  return (await found.project<{ _id: string }>({ _id: 1 }).toArray()).map(({ _id }) => _id);
}
