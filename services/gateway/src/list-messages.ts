import type { DeliveryStatus } from '@posthorn/domain/delivery.ts';
import { deliveryIdOf, firstIdAt } from '@posthorn/domain/ids.ts';
import { messageStatus, statusBeforeAttempts, type Message } from '@posthorn/domain/message.ts';
import type {
  DeliveryOutline,
  DeliveryQueries,
} from '@posthorn/platform/mongo/delivery-queries.ts';
import type { MessageOutline, MessageQueries } from '@posthorn/platform/mongo/message-queries.ts';

export interface MessageQuery {
  appId?: string | undefined;
  webhookId?: string | undefined;
  status?: DeliveryStatus | undefined;
  /** Both inclusive, in milliseconds since 1970. */
  fromMs?: number | undefined;
  toMs?: number | undefined;
  /** The last message of the page before. */
  cursor?: string | undefined;
  limit: number;
}

export interface ListedMessages {
  /** Newest first. */
  messages: { message: Message; known: DeliveryOutline[] }[];
  nextCursor: string | null;
}

export interface ListDeps {
  messages: Pick<MessageQueries, 'listOutlines' | 'outlinesOf' | 'findMany'>;
  deliveries: Pick<DeliveryQueries, 'outlinesOf' | 'messagesOfFailed'>;
}

interface Candidate {
  outline: MessageOutline;
  known: DeliveryOutline[];
}

const CHUNK = 500;
/** A page stops looking here and answers what it has: rare states must not cost unbounded work. */
const MAX_SCANNED = 10_000;

/**
 * One page of messages. The status of a message is that of its deliveries and is stored nowhere, so
 * a filter by status reads candidates and keeps those that match.
 */
export async function listMessages(
  deps: ListDeps,
  companyId: string,
  query: MessageQuery,
): Promise<ListedMessages> {
  const { limit, status } = query;
  const kept: Candidate[] = [];
  let beforeId = upperBound(query);
  let scanned = 0;
  for (;;) {
    const size = status === undefined ? limit + 1 : CHUNK;
    const candidates = await candidatesBefore(deps, companyId, query, beforeId, size);
    for (const candidate of candidates.page) {
      if (kept.length === limit) return answer(deps, companyId, kept, kept.at(-1)?.outline.id);
      if (status === undefined || statusOf(candidate) === status) kept.push(candidate);
    }
    scanned += size;
    beforeId = candidates.lastId ?? beforeId;
    if (candidates.isEnd) return answer(deps, companyId, kept, undefined);
    if (scanned >= MAX_SCANNED) return answer(deps, companyId, kept, beforeId);
  }
}

/** Exclusive. */
function upperBound({ toMs, cursor }: MessageQuery): string | undefined {
  const end = toMs === undefined ? undefined : firstIdAt('msg', toMs + 1);
  if (end === undefined || cursor === undefined) return end ?? cursor;
  return cursor < end ? cursor : end;
}

interface Candidates {
  page: Candidate[];
  lastId: string | undefined;
  isEnd: boolean;
}

/** Failures are few and have an index; every other state is looked for among all messages. */
async function candidatesBefore(
  deps: ListDeps,
  companyId: string,
  query: MessageQuery,
  beforeId: string | undefined,
  size: number,
): Promise<Candidates> {
  const { appId, webhookId, status, fromMs } = query;
  const fromId = fromMs === undefined ? undefined : firstIdAt('msg', fromMs);
  const filter = { appId, webhookId, fromId, beforeId };
  if (status !== 'exhausted' && status !== 'cancelled') {
    const outlines = await deps.messages.listOutlines(companyId, filter, size);
    return withDeliveries(deps, companyId, outlines, outlines.length < size);
  }
  // Not by webhook: a message to it may have failed at another one, and that is its status too.
  const failures = { appId, status, fromId, beforeId };
  const ids = await deps.deliveries.messagesOfFailed(companyId, failures, size);
  const distinct = [...new Set(ids)];
  const found = (await deps.messages.outlinesOf(companyId, distinct)).filter(
    ({ targets }) => webhookId === undefined || targets.includes(webhookId),
  );
  const isEnd = ids.length < size;
  const newestFirst = found.sort((a, b) => (a.id < b.id ? 1 : -1));
  const page = await withDeliveries(deps, companyId, newestFirst, isEnd);
  return { ...page, lastId: distinct.at(-1) };
}

async function withDeliveries(
  { deliveries }: ListDeps,
  companyId: string,
  outlines: readonly MessageOutline[],
  isEnd: boolean,
): Promise<Candidates> {
  const ids = outlines.flatMap(({ id, targets }) => targets.map((to) => deliveryIdOf(id, to)));
  const known = new Map(
    (await deliveries.outlinesOf(companyId, ids)).map((each) => [each.id, each]),
  );
  const page = outlines.map((outline) => ({
    outline,
    known: outline.targets.flatMap((to) => known.get(deliveryIdOf(outline.id, to)) ?? []),
  }));
  return { page, lastId: outlines.at(-1)?.id, isEnd };
}

function statusOf({ outline, known }: Candidate): DeliveryStatus {
  const byWebhook = new Map(known.map(({ webhookId, status }) => [webhookId, status]));
  return messageStatus(
    outline.targets.map((to) => byWebhook.get(to) ?? statusBeforeAttempts(outline, to)),
  );
}

async function answer(
  { messages }: ListDeps,
  companyId: string,
  kept: readonly Candidate[],
  nextCursor: string | undefined,
): Promise<ListedMessages> {
  const ids = kept.map(({ outline }) => outline.id);
  const byId = new Map((await messages.findMany(companyId, ids)).map((each) => [each.id, each]));
  const page = kept.flatMap(({ outline, known }) => {
    const message = byId.get(outline.id);
    return message ? [{ message, known }] : [];
  });
  return { messages: page, nextCursor: nextCursor ?? null };
}
