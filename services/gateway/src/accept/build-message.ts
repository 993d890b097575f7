import { unattemptedDelivery } from '@posthorn/domain/delivery/settlement.ts';
import { type IdPrefix, timeMsOf } from '@posthorn/domain/ids.ts';
import type { Idempotency, Message } from '@posthorn/domain/message.ts';
import { slicesOf } from '@posthorn/platform/async/fair-queue.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { Vault } from '@posthorn/platform/security/vault.ts';
import { headersOf, type ShownHeaders } from '../history/sent-headers.ts';
import type { Address, ResolvedTargets } from './targets.ts';

/** A message as a client requests it. */
export interface NewMessage {
  companyId: string;
  address: Address;
  eventType: string | null;
  /** The payload's text exactly as it was sent. */
  payload: string;
  requestId: string;
  tags?: string[] | undefined;
  externalId?: string | undefined;
  /** Null when the client sent no idempotency key. */
  idempotency: Omit<Idempotency, 'answer'> | null;
  isTest?: true;
  traceparent?: string | undefined;
}

/** A request with the webhooks that it goes to. */
export interface ResolvedRequest extends ResolvedTargets {
  request: NewMessage;
}

export interface BuiltMessage {
  kind: 'built';
  message: Message;
  /** The signature and headers of the oldest webhook. */
  shown: ShownHeaders;
}

export interface BuildMessageDeps {
  responses: Pick<SealedResponses, 'seal'>;
  /** Names the publisher of the messages that are built now. */
  publisherId: () => string;
  newId: (prefix: IdPrefix) => string;
}

/**
 * Returns the message as it is stored, and its first response. Called when its batch is formed, in
 * the order of the batch: ids must grow in the order of the inserts.
 */
export function buildMessage(deps: BuildMessageDeps, resolved: ResolvedRequest): BuiltMessage {
  const message = toMessage(deps, resolved);
  const { signature, headers } = headersOf(message, resolved.oldest);
  const shown = { signature, headers };
  return { kind: 'built', message: withSealedResponse(deps, message, shown), shown };
}

function toMessage(
  { newId, publisherId }: BuildMessageDeps,
  { request, targets, disabledTargets, notStored }: ResolvedRequest,
): Message {
  const { companyId, address, eventType, payload, requestId, ...optional } = request;
  const id = newId('msg');
  return {
    id,
    companyId,
    appId: address.kind === 'app' ? address.appId : null,
    eventType,
    payload,
    targets: [...targets],
    disabledTargets,
    publisherId: publisherId(),
    requestId,
    idempotency: optional.idempotency && { ...optional.idempotency, answer: '' },
    ...(optional.tags && { tags: optional.tags }),
    ...(optional.externalId !== undefined && { externalId: optional.externalId }),
    ...(optional.isTest && { isTest: true as const }),
    ...(optional.traceparent && { traceparent: optional.traceparent }),
    ...notStored,
    // The time in the id, so that filters by time and pages by id agree.
    createdAtMs: timeMsOf(id),
  };
}

/** The first response is stored in the same write: at no moment does only one of the two exist. */
function withSealedResponse(
  { responses }: BuildMessageDeps,
  message: Message,
  shown: ShownHeaders,
): Message {
  if (!message.idempotency) return message;
  const sealed = responses.seal(message, shown);
  return { ...message, idempotency: { ...message.idempotency, answer: sealed } };
}

export interface CancelDisabledDeps {
  deliveries: Pick<DeliveryStore, 'insertAll'>;
  logger: Logger;
}

/** The time of the process and MongoDB for one cancelled delivery, in milliseconds. */
export const MS_PER_CANCELLATION = 0.025;

/** To derive the ids of so many, and to encode their documents, takes 2 ms; of 10,000 it would be 60 ms in one piece. */
const CANCELLED_AT_ONCE = 250;

const MAX_LOGGED = 5;

/**
 * Records the deliveries to disabled webhooks as cancelled, a slice after the other. This runs before the response, so
 * that lists and resends find them. The dispatcher cancels those that cannot be recorded here: their records are
 * published like all others. The company of the message was charged for all of it before (`fanOutMsOf`).
 */
export async function cancelDisabledDeliveries(
  { deliveries, logger }: CancelDisabledDeps,
  message: Message,
): Promise<void> {
  const { id: messageId, companyId, disabledTargets, createdAtMs } = message;
  for (const webhookIds of slicesOf([...disabledTargets], CANCELLED_AT_ONCE)) {
    try {
      await deliveries.insertAll(
        webhookIds.map((webhookId) => unattemptedDelivery(message, webhookId, createdAtMs)),
      );
    } catch (error) {
      logger.warn(
        { err: error, messageId, companyId, webhookIds: webhookIds.slice(0, MAX_LOGGED) },
        'cannot cancel deliveries to disabled webhooks, the dispatcher will',
      );
      return;
    }
  }
}

/** The first response to a request with an idempotency key, as its message stores it. */
export interface SealedResponses {
  /** Seals the part that cannot be rebuilt: the webhook may change, the message does not. */
  seal: (message: Message, shown: ShownHeaders) => string;
  /** Throws SealedValueError when the stored value is missing or cannot be decrypted. */
  open: (message: Message) => ShownHeaders;
}

/** Encrypts the responses as the secrets of webhooks are: the values of their headers may be credentials. */
export function createSealedResponses(vault: Vault): SealedResponses {
  const bindingOf = ({ companyId, id }: Message) => ({ companyId, ownerId: id, field: 'answer' });
  return {
    seal: (message, { signature, headers }) =>
      vault.seal(JSON.stringify({ signature, headers }), bindingOf(message)),
    open: (message) =>
      JSON.parse(vault.open(message.idempotency?.answer ?? '', bindingOf(message))) as ShownHeaders,
  };
}
