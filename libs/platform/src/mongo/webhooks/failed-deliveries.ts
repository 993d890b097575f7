import { statusesOf, storedReasonOf } from '@posthorn/domain/delivery/delivery-filter.ts';
import type { Outcome } from '@posthorn/domain/delivery/delivery.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import { FAILED_STATUSES, type Resend, type ResendFilter } from '@posthorn/domain/resend.ts';
import type { mongo } from 'mongoose';
import { documentsIn, documentsOf } from '../company-documents.ts';
import type { Database } from '../days/days.ts';
import { countUpTo, readUpTo } from '../days/read-days.ts';
import type { DeliveryDocument } from '../documents.ts';
import { type DeliveryPage, mergePages, pageOfRead } from '../messages/delivery-pages.ts';
import { isStated } from '../messages/delivery-queries.ts';
import { createMessageQueries } from '../messages/message-queries.ts';
import { createStatedDeliveries } from '../messages/stated-deliveries.ts';

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

function failedStatuses({ filter }: Pick<Resend, 'filter'>): readonly FailedStatus[] {
  const wanted: readonly string[] = statusesOf(filter ?? {});
  return FAILED_STATUSES.filter((status) => wanted.includes(status));
}

/** See `count` of ResendStore. */
export async function countRemaining(
  db: Database,
  resend: Resend,
  mostCounted: number,
): Promise<number> {
  if (isOfType(resend)) {
    const { ids, lookedTo } = await nextPage(db, { ...resend, outcome: null }, mostCounted);
    if (lookedTo === null) return ids.length;
  }
  return countOfAnyType(db, resend, mostCounted);
}

/** See `countAll` of ResendStore. */
export async function countAllRemaining(db: Database, resend: Resend): Promise<number> {
  if (!isOfType(resend)) return countOfAnyType(db, resend, Number.MAX_SAFE_INTEGER);
  let sum = 0;
  for (let { afterId } = resend; ;) {
    const { ids, lookedTo } = await nextPage(db, { ...resend, afterId, outcome: null }, CHUNK);
    sum += ids.length;
    if (lookedTo === null) return sum;
    afterId = lookedTo;
  }
}

/** Deliveries have no event type: to count those of one, their messages are read. */
function isOfType({ webhookId, filter }: Resend): boolean {
  return webhookId !== null && filter?.eventType !== undefined;
}

async function countOfAnyType(db: Database, resend: Resend, mostCounted: number): Promise<number> {
  const ids = resend.webhookId === null ? await enabledWebhooks(db, resend) : [resend.webhookId];
  const recorded = await countRecorded(db, resend, ids, mostCounted);
  if (recorded === mostCounted || !maySendStated(resend)) return recorded;
  const { companyId, afterId: fromId, beforeId, filter } = resend;
  const of = { companyId, webhookIds: ids, appId: filter?.appId };
  const left = mostCounted - recorded;
  return recorded + (await createStatedDeliveries(db).count(of, { fromId, beforeId }, left));
}

/** Whether it sends deliveries that messages state, which have no attempt. */
function maySendStated(resend: Pick<Resend, 'filter'>): boolean {
  const reason = resend.filter ? storedReasonOf(resend.filter) : undefined;
  return failedStatuses(resend).some((status) => isStated({ status, reason }));
}

async function countRecorded(
  db: Database,
  resend: Resend,
  webhookIds: readonly string[],
  mostCounted: number,
): Promise<number> {
  const [only, ...others] = webhookIds;
  if (only === undefined) return 0;
  const webhookId = others.length === 0 ? only : { $in: [...webhookIds] };
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

/** Where the deliveries of the resend are that have not expired, with their days, the oldest first. */
function spanOf({ days: { deliveries } }: Database, { afterId, beforeId }: Resend) {
  const { fromId } = deliveries.kept({ fromId: afterId }, 'dlv');
  const span: Span = { afterId: fromId, beforeId };
  return { span, days: deliveries.within({ fromId, beforeId }) };
}

/** Failed deliveries that are read at a time to find those of an event type, or with an outcome: no index has either. */
const CHUNK = 500;
/** A page reads so many at most: about a tenth of a second, after which its caller may stop. */
const MOST_READ = 10_000;

export interface FailedPage {
  ids: string[];
  /** The last delivery that was looked at; null when there are none behind it. */
  lookedTo: string | null;
}

/** See `nextPage` of ResendStore. */
export async function nextPage(db: Database, resend: Resend, limit: number): Promise<FailedPage> {
  const { webhookId, outcome, filter } = resend;
  if (webhookId === null) return { ids: [], lookedTo: null };
  const isSelective = outcome !== null || filter?.eventType !== undefined;
  const size = isSelective ? CHUNK : limit;
  const ids: string[] = [];
  let { afterId } = resend;
  for (let looked = 0; looked < MOST_READ;) {
    const { found, examined, readTo } = await readFailed(
      db,
      { ...resend, webhookId, afterId },
      size,
    );
    ids.push(...(isSelective ? await selectedOf(db, resend, found) : found).map(idOf));
    if (ids.length >= limit) return { ids: ids.slice(0, limit), lookedTo: ids[limit - 1] ?? null };
    if (readTo === null) return { ids, lookedTo: null };
    afterId = readTo.deliveryId;
    looked += Math.max(size, examined);
  }
  return { ids, lookedTo: afterId };
}

interface FailedDelivery {
  id: string;
  messageId: string;
  /** Null without an attempt. */
  lastOutcome: Outcome | null;
}

const idOf = ({ id }: { id: string }): string => id;

async function selectedOf(
  db: Database,
  { companyId, outcome, filter }: Resend,
  read: readonly FailedDelivery[],
): Promise<readonly FailedDelivery[]> {
  const ended = read.filter(({ lastOutcome }) => outcome === null || lastOutcome === outcome);
  const eventType = filter?.eventType;
  if (eventType === undefined) return ended;
  const messageIds = ended.map(({ messageId }) => messageId);
  const types = await createMessageQueries(db).eventTypesOf(companyId, messageIds);
  return ended.filter(({ messageId }) => types.get(messageId) === eventType);
}

/**
 * The next failed deliveries of a webhook, oldest first, of any event type; of any outcome too, but those that messages state
 * have none. What is recorded is read last: what another resend records meanwhile is in both.
 */
async function readFailed(
  db: Database,
  resend: Resend & { webhookId: string },
  limit: number,
): Promise<DeliveryPage<FailedDelivery>> {
  const { companyId, webhookId, filter, afterId: fromId, beforeId, outcome } = resend;
  if (outcome !== null || !maySendStated(resend)) {
    return pageOfRead(await readRecorded(db, resend, limit), limit);
  }
  const stated = await createStatedDeliveries(db).ofWebhook(
    { companyId, webhookId, appId: filter?.appId },
    { fromId, beforeId },
    { limit, order: 'oldest' },
  );
  const found = stated.found.map(({ id, messageId }) => ({ id, messageId, lastOutcome: null }));
  const recorded = pageOfRead(await readRecorded(db, resend, limit), limit);
  return mergePages<FailedDelivery>([{ ...stated, found }, recorded], 'oldest', limit);
}

type RecordedDocument = Pick<DeliveryDocument, '_id' | 'messageId'> & { lastOutcome?: Outcome };

async function readRecorded(
  db: Database,
  resend: Resend & { webhookId: string },
  limit: number,
): Promise<FailedDelivery[]> {
  const { companyId, webhookId, filter } = resend;
  const { span, days } = spanOf(db, resend);
  const shown = { messageId: 1, lastOutcome: { $last: '$attempts.outcome' } };
  const found = await readUpTo(days, limit, async (documents, left) => {
    const own = documentsIn<'deliveries'>(documents, companyId);
    const pages = failedStatuses(resend).map((status) => {
      const found = own
        .find(remaining(webhookId, span, status, filter))
        .sort({ _id: 1 })
        .limit(left);
      return found.project<RecordedDocument>(shown).toArray();
    });
    const read = (await Promise.all(pages)).flat();
    return read.sort((a, b) => (a._id < b._id ? -1 : 1)).slice(0, left);
  });
  return found.map(({ _id: id, messageId, lastOutcome = null }) => ({
    id,
    messageId,
    lastOutcome,
  }));
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
