import { timeMsOf, type IdPrefix } from '@posthorn/domain/ids/ids.ts';
import type { Idempotency, Message } from '@posthorn/domain/message/message.ts';
import { shownOf, type ShownWebhook } from '../http/responses/message.ts';
import type { SealedResponses } from './sealed-responses.ts';
import type { Address, ResolvedTargets } from './targets/resolve-targets.ts';

/** A message as a client asks for it. */
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

/** A request with the webhooks that it goes to. */
export interface ResolvedRequest extends ResolvedTargets {
  request: NewMessage;
}

export interface BuiltMessage {
  kind: 'built';
  message: Message;
  /** What the response shows of the oldest webhook. */
  shown: ShownWebhook;
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
  const shown = shownOf(message, resolved.oldest);
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
  shown: ShownWebhook,
): Message {
  if (!message.idempotency) return message;
  const sealed = responses.seal(message, shown);
  return { ...message, idempotency: { ...message.idempotency, answer: sealed } };
}
