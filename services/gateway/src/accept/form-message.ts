import { timeMsOf, type IdPrefix } from '@posthorn/domain/ids.ts';
import type { Idempotency, Message } from '@posthorn/domain/message.ts';
import type { FoundWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { describeAccepted, type CreatedMessage } from '../http/answers/message.ts';
import type { KeptAnswers } from './sealed-answers.ts';
import type { Address } from './resolve-targets.ts';

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

/** A request that waits for its place in a batch. */
export interface Arrived {
  request: NewMessage;
  webhooks: readonly FoundWebhook[];
}

export interface Formed {
  message: Message;
  answer: CreatedMessage;
}

export interface FormDeps {
  answers: Pick<KeptAnswers, 'seal'>;
  /** Names this gateway process in every message it stores. */
  publisherId: string;
  newId: (prefix: IdPrefix) => string;
}

/**
 * The message as it is stored, and its first answer. To be called when its batch is formed and in
 * the order of the batch: ids must grow in the order of the inserts.
 */
export function formMessage(deps: FormDeps, { request, webhooks }: Arrived): Formed {
  const message = newMessage(deps, request, webhooks);
  const answer = describeAccepted(message, webhooks);
  return { message: withAnswer(deps, message, answer), answer };
}

function newMessage(
  { newId, publisherId }: FormDeps,
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
function withAnswer({ answers }: FormDeps, message: Message, answer: CreatedMessage): Message {
  if (!message.idempotency) return message;
  const sealed = answers.seal(message, answer);
  return { ...message, idempotency: { ...message.idempotency, answer: sealed } };
}
