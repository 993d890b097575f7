import { deliveryIdOf, timeMsOf, type IdPrefix } from '@posthorn/domain/ids.ts';
import type { Idempotency, Message } from '@posthorn/domain/message.ts';
import { createBatcher } from '@posthorn/platform/batcher.ts';
import type { Logger } from '@posthorn/platform/logger.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries.ts';
import type { InsertOutcome, MessageStore } from '@posthorn/platform/mongo/messages.ts';
import type { FoundWebhook } from '@posthorn/platform/mongo/webhooks.ts';
import { describeAccepted, type CreatedMessage } from './answers/message.ts';
import { notFound, unavailable } from './http/api-error.ts';
import type { KeptAnswers } from './keep-answer.ts';
import type { Publication } from './publish-created.ts';
import type { Doubts } from './settle-doubts.ts';
import type { Address, TargetResolver } from './resolve-targets.ts';

export interface AcceptDeps {
  targets: TargetResolver;
  messages: MessageStore;
  publication: Publication;
  doubts: Doubts;
  answers: Pick<KeptAnswers, 'seal'>;
  deliveries: Pick<DeliveryStore, 'insertAll'>;
  /** Names this gateway process in every message it stores. */
  publisherId: string;
  newId: (prefix: IdPrefix) => string;
  logger: Logger;
}

export interface NewMessage {
  companyId: string;
  address: Address;
  eventType: string | null;
  /** The payload's text exactly as it was sent. */
  payload: string;
  requestId: string;
  /** Null when the client sent no idempotency key. */
  idempotency: Omit<Idempotency, 'answer'> | null;
  isTest?: true;
  traceparent?: string | undefined;
}

/** The `data` of the answer; null when another message has the same idempotency key. */
export type Accepted = CreatedMessage | null;

export interface AcceptMessage {
  accept: (request: NewMessage) => Promise<Accepted>;
  /** Resolves when every insert was answered, also those whose client has gone. */
  idle: () => Promise<void>;
}

/** One insert in flight and 3 ms of linger: measured fastest and cheapest (docs/decisions/0002-group-commit.md). */
const GROUP_COMMIT = { maxItems: 200, lingerMs: 3, maxInFlight: 1 };
/** Beyond this many waiting requests the store is too slow to hope; clients are told to come back. */
const MAX_WAITING = 5_000;
/** A payload may have a quarter of a megabyte, and several copies of it live until the store answers. */
const MAX_WAITING_CHARS = 67_108_864;

/**
 * Step 1, accept: the majority write of the message is the acceptance. Publication follows behind
 * it and never delays the answer. Throws ApiError 404 for an unknown address, 503 when not stored.
 */
export function createAcceptMessage(deps: AcceptDeps): AcceptMessage {
  const store = createBatcher<Message, InsertOutcome>({
    ...GROUP_COMMIT,
    run: (batch) => storeAndPublish(deps, batch),
  });

  let waitingChars = 0;

  const accept = async (request: NewMessage): Promise<Accepted> => {
    const { companyId, address } = request;
    const webhooks = await deps.targets.resolve(companyId, address);
    if (!webhooks) throw notFound(address.kind);
    if (store.size() >= MAX_WAITING || waitingChars >= MAX_WAITING_CHARS) throw unavailable();
    // Nothing may be awaited between here and `store.add`: ids must grow in the order of the inserts.
    const message = newMessage(deps, request, webhooks);
    const answer = describeAccepted(message, webhooks);
    waitingChars += message.payload.length;
    const outcome = await store.add(withAnswer(deps, message, answer)).finally(() => {
      waitingChars -= message.payload.length;
    });
    if (outcome === 'repeated') return null;
    if (outcome !== 'stored') throw unavailable();
    await cancelDisabled(deps, message);
    return answer;
  };
  return { accept, idle: store.idle };
}

function newMessage(
  { newId, publisherId }: AcceptDeps,
  { companyId, address, eventType, payload, requestId, ...optional }: NewMessage,
  webhooks: readonly FoundWebhook[],
): Message {
  const id = newId('msg');
  return {
    id,
    companyId,
    appId: address.kind === 'app' ? address.appId : null,
    eventType,
    payload,
    targets: webhooks.map((webhook) => webhook.id),
    disabledTargets: webhooks.flatMap((webhook) => (webhook.disabled ? [webhook.id] : [])),
    publisherId,
    requestId,
    idempotency: optional.idempotency && { ...optional.idempotency, answer: '' },
    ...(optional.isTest && { isTest: true as const }),
    ...(optional.traceparent && { traceparent: optional.traceparent }),
    // The id's own time, so that a filter by time and a page by id agree.
    createdAtMs: timeMsOf(id),
  };
}

/** The first answer is stored in the same write: there is no moment in which only one of the two exists. */
function withAnswer({ answers }: AcceptDeps, message: Message, answer: CreatedMessage): Message {
  if (!message.idempotency) return message;
  const sealed = answers.seal(message, answer);
  return { ...message, idempotency: { ...message.idempotency, answer: sealed } };
}

/**
 * Deliveries to disabled webhooks are cancelled before the answer, so that lists and resends find
 * them. When this fails the dispatcher does it: their records are published like any other.
 */
async function cancelDisabled(
  { deliveries, logger }: AcceptDeps,
  { id: messageId, companyId, appId, disabledTargets, createdAtMs }: Message,
): Promise<void> {
  if (disabledTargets.length === 0) return;
  const cancelled = disabledTargets.map((webhookId) => ({
    id: deliveryIdOf(messageId, webhookId),
    ...{ messageId, webhookId, companyId, appId, createdAtMs, updatedAtMs: createdAtMs },
    ...{ status: 'cancelled' as const, reason: 'webhook_disabled' as const },
    ...{ attempt: null, nextAttemptAtMs: null },
  }));
  await deliveries.insertAll(cancelled).catch((error: unknown) => {
    logger.warn({ err: error, messageId }, 'cancelling is left to the dispatcher');
  });
}

async function storeAndPublish(
  { messages, publication, doubts, logger }: AcceptDeps,
  batch: Message[],
): Promise<InsertOutcome[]> {
  const outcomes = await messages.insertAll(batch);
  const refused = outcomes.filter((outcome) => outcome === 'refused').length;
  if (refused > 0) logger.error({ refused }, 'messages refused by the store');
  doubts.add(batch.filter((_, index) => outcomes[index] === 'doubtful'));
  publication.add(batch.filter((_, index) => outcomes[index] === 'stored'));
  return outcomes;
}
