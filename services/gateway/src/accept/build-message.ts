import { DAY_MS, type IdPrefix, timeMsOf } from '@posthorn/domain/ids.ts';
import type { Idempotency, Message } from '@posthorn/domain/message.ts';
import type { GivenFields } from '@posthorn/domain/message-fields.ts';
import type { Vault } from '@posthorn/platform/security/vault.ts';
import { invalidRequest, type Problem } from '../api-error.ts';
import { headersOf, type ShownHeaders } from '../history/sent-headers.ts';
import type { ResolvedTargets } from './select-targets.ts';
import type { Address } from './targets.ts';

/** A message as a client requests it. */
export interface NewMessage {
  companyId: string;
  address: Address;
  eventType: string | null;
  /** The payload's text exactly as it was sent. */
  payload: string;
  requestId: string;
  given?: GivenFields;
  /** It was read from Kafka, where it may have waited beyond its times. */
  mayBeLate?: true;
  /** Null when the client sent no idempotency key. */
  idempotency: Omit<Idempotency, 'answer'> | null;
  isTest?: true;
  traceparent?: string | undefined;
  /** The response shows the signature and the headers. That of a batch does not, and a record of Kafka has no response. */
  showsHeaders?: true;
}

/** A request with the webhooks that it goes to. */
export interface ResolvedRequest extends ResolvedTargets {
  request: NewMessage;
  /** Shared by the requests whose ids must be in their order; undefined for a request alone. */
  order?: SendOrder | undefined;
}

export interface SendOrder {
  /** True once a request is not stored: those behind it must not be. */
  isBroken: boolean;
}

/** A message as it is stored, and the signature and headers of its oldest webhook, null unless its response shows them. */
export interface Accepted {
  message: Message;
  shown: ShownHeaders | null;
}

export interface BuildMessageDeps {
  responses: Pick<SealedResponses, 'seal'>;
  /** Names the publisher of the messages that are built now. */
  publisherId: () => string;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
  /** How long messages are kept. */
  retentionMs: () => number;
}

/**
 * Returns the message as it is stored, and its first response if that shows headers: signing 1 KB takes 4 µs, sealing the
 * response 16 µs. Called when its batch is formed, in the order of the batch: ids must grow in the order of the inserts.
 */
export function buildMessage(deps: BuildMessageDeps, resolved: ResolvedRequest): Accepted {
  const message = toMessage(deps, resolved);
  if (!resolved.request.showsHeaders) return { message, shown: null };
  const { signature, headers } = headersOf(message, resolved.oldest);
  const shown = { signature, headers };
  return { message: withSealedResponse(deps, message, shown), shown };
}

function toMessage(
  { newId, publisherId, nowMs }: BuildMessageDeps,
  { request, targets, disabledTargets, orderedTargets, notStored, noTargetReason }: ResolvedRequest,
): Message {
  const { companyId, address, eventType, payload, requestId, given = {}, ...optional } = request;
  const { deliverAtMs, retentionDays, ...kept } = given;
  const id = newId('msg');
  // The time in the id, so that filters by time and pages by id agree.
  const createdAtMs = timeMsOf(id);
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
    ...(noTargetReason && { noTargetReason }),
    ...notStored,
    ...kept,
    ...(isInSequence(given, orderedTargets) && { isOrdered: true as const }),
    ...(deliverAtMs !== undefined && deliverAtMs > nowMs() && { deliverAtMs }),
    ...(retentionDays !== undefined && { removeAtMs: createdAtMs + retentionDays * DAY_MS }),
    createdAtMs,
  };
}

/** Whether deliveries of the message may have to wait for earlier ones. */
export function isInSequence(
  { orderingKey }: Pick<GivenFields, 'orderingKey'>,
  orderedTargets: ReadonlySet<string>,
): boolean {
  return orderingKey !== undefined && orderedTargets.size > 0;
}

/** A message may wait so long for its time, and no longer than until two days before messages are removed. */
const MAX_AHEAD_MS = 30 * DAY_MS;
const MIN_AHEAD_MS = 1_000;

/** Throws ApiError 400 for times that do not fit each other, the time of the request, or how long messages are kept. */
export function assertTimes(
  { given: { deliverAtMs, expiresAtMs, retentionDays } = {}, mayBeLate }: NewMessage,
  { nowMs, retentionMs }: Pick<BuildMessageDeps, 'nowMs' | 'retentionMs'>,
): void {
  if ((deliverAtMs ?? expiresAtMs ?? retentionDays) === undefined) return;
  const [now, keptMs] = [nowMs(), retentionMs()];
  const problems: Problem[] = [];
  const check = (isRight: boolean, path: string, message: string): void => {
    if (!isRight) problems.push({ path, message });
  };
  if (retentionDays !== undefined) {
    const days = Math.floor(keptMs / DAY_MS);
    const text = `must be at most ${days}: so many days messages are kept here`;
    check(retentionDays <= days, 'retentionDays', text);
  }
  if (expiresAtMs !== undefined && !mayBeLate) {
    check(expiresAtMs > now, 'expiresAt', 'must be in the future');
  }
  if (deliverAtMs !== undefined) {
    const isAhead = mayBeLate === true || deliverAtMs >= now + MIN_AHEAD_MS;
    check(isAhead, 'deliverAt', 'must be a second in the future at least');
    const mostMs = Math.min(MAX_AHEAD_MS, keptMs - 2 * DAY_MS);
    const text = `must be at most ${Math.floor(mostMs / DAY_MS)} days in the future`;
    check(deliverAtMs <= now + mostMs, 'deliverAt', text);
    const endMs = Math.min(expiresAtMs ?? Infinity, now + (retentionDays ?? Infinity) * DAY_MS);
    const isBeforeEnd = mayBeLate === true || deliverAtMs < endMs;
    check(isBeforeEnd, 'deliverAt', 'must be before expiresAt and the end of retentionDays');
  }
  if (problems.length > 0) throw invalidRequest(problems);
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
