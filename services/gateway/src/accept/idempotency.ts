import { ImpossibleError } from '@posthorn/domain/required.ts';
import {
  CLAIM_LASTS_MS,
  type ClaimedKey,
  KEPT_MS,
  type KeyHolder,
} from '@posthorn/platform/mongo/messages/idempotency-keys.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import { startAtZero } from '@posthorn/platform/service/metrics.ts';
import { hash } from 'node:crypto';
import { Counter, type Registry } from 'prom-client';
import { ApiError, keyRunning } from '../api-error.ts';
import type { TakeTurn } from '../limits/turns.ts';
import type { Accepted, AcceptMessage, NewMessage } from './accept-message.ts';
import type { SealedResponses } from './build-message.ts';

export interface IdempotentAcceptDeps {
  accept: AcceptMessage['accept'];
  messages: Pick<MessageQueries, 'findKeyHolder' | 'findOne' | 'releaseKey'>;
  responses: Pick<SealedResponses, 'open'>;
  registry: Registry;
}

export interface KeyedRequest {
  message: Omit<NewMessage, 'idempotency'>;
  /** Undefined when the client sent no key. */
  key: string | undefined;
  /** The whole body as the client sent it. */
  bytes: Buffer;
  /** Counts bytes that are about to be read for this request. Throws ApiError 503 when there is no room. */
  reserve: (bytes: number) => void;
  takeTurn: TakeTurn;
}

interface IdempotentResponse extends Accepted {
  /** True when this is the first request's response again. */
  isReplayed: boolean;
}

/**
 * Accepts a message, or returns the first response again when the request is a repeat. Throws
 * ApiError 409 while the first request is not decided, 422 when its body was another one, 503 when there
 * is no room for the first response, and what `accept` throws (docs/contract.md, C8).
 */
export type IdempotentAccept = (request: KeyedRequest) => Promise<IdempotentResponse>;

/**
 * A key is claimed for a message before that is stored (docs/decisions/0012-keys-are-claimed-before-their-message.md), so
 * that a key is looked up only when another message has it, or when the request is refused. A crash between the two
 * writes leaves a claim without a message, which counts for two minutes.
 */
export function createIdempotentAccept(deps: IdempotentAcceptDeps): IdempotentAccept {
  const lookups = new Counter({
    name: 'posthorn_idempotency_lookups_total',
    help: 'Messages sent with an idempotency key, by whether the key was new or repeated.',
    labelNames: ['result'],
    registers: [deps.registry],
  });
  startAtZero(lookups, 'result', ['new', 'repeated']);
  return async (request) => {
    const { message, key, bytes, takeTurn } = request;
    if (key === undefined) return acceptWithoutKey(deps, request);
    const { companyId } = message;
    const bodyHash = bodyHashOf(bytes);
    const readUse = async (): Promise<KeyUse> =>
      keyUseOf(await deps.messages.findKeyHolder(companyId, key), bodyHash);
    const accept = async (): Promise<IdempotentResponse | null> => {
      const accepted = await deps.accept({ ...message, idempotency: { key, bodyHash } }, takeTurn);
      if (!accepted) return null;
      lookups.inc({ result: 'new' });
      return { ...accepted, isReplayed: false };
    };
    const again = (use: KeyUse): Promise<IdempotentResponse> => {
      lookups.inc({ result: 'repeated' });
      return respondAgain(deps, request, use);
    };

    let accepted: IdempotentResponse | null;
    try {
      accepted = await accept();
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // A repeat gets its first response although its webhook, say, is deleted now.
      const use = await readUse();
      if (use.kind === 'first' || freedBy(use)) throw error;
      return again(use);
    }
    if (accepted) return accepted;
    const use = await readUse();
    const freed = freedBy(use);
    if (!freed) return again(use);
    await deps.messages.releaseKey(companyId, key, freed);
    return (await accept()) ?? again(await readUse());
  };
}

/** True for an error of the request. With any other one, its message may be stored. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && error.status < 500;
}

function freedBy(use: KeyUse): KeyHolder | ClaimedKey | null {
  if (use.kind === 'expired') return use.holder;
  return use.kind === 'abandoned' ? use.claim : null;
}

async function acceptWithoutKey(
  { accept }: IdempotentAcceptDeps,
  { message, takeTurn }: KeyedRequest,
): Promise<IdempotentResponse> {
  const accepted = await accept({ ...message, idempotency: null }, takeTurn);
  if (!accepted) {
    throw new ImpossibleError('the store reported a repeated key for a message without one');
  }
  return { ...accepted, isReplayed: false };
}

async function respondAgain(
  deps: IdempotentAcceptDeps,
  request: KeyedRequest,
  use: KeyUse,
): Promise<IdempotentResponse> {
  switch (use.kind) {
    case 'repeat':
      return { ...(await readResponse(deps, request, use.holder)), isReplayed: true };
    case 'reused':
      throw new ApiError('idempotency_key_reused');
    // Another request has the key, but its message is not committed by a majority yet.
    case 'first':
    case 'expired':
    case 'running':
    case 'abandoned':
      throw keyRunning();
  }
}

/** The document, its opened response as text and as objects, and the response as it is sent. */
const COPIES = 4;

/** A response may have megabytes: one delivery for each webhook of an app. So it is counted before it is read. */
async function readResponse(
  { messages, responses }: IdempotentAcceptDeps,
  { message: { companyId, payload }, reserve }: KeyedRequest,
  holder: KeyHolder,
): Promise<Accepted> {
  reserve(holder.storedBytes * COPIES);
  const found = await messages.findOne(companyId, holder.id);
  // The message has expired since the look-up.
  if (!found) throw keyRunning();
  // The same bytes as the first request had, also when the stored ones are erased.
  const message = { ...found, payload };
  return { message, shown: responses.open(message) };
}

/** What a request with a key means. `holder` is the message that has the key. */
type KeyUse =
  | { kind: 'first' }
  /** The holder is older than a key is kept: its key has to be released for this request. */
  | { kind: 'expired'; holder: KeyHolder }
  /** The same request once more. */
  | { kind: 'repeat'; holder: KeyHolder }
  /** The holder's request had another body. */
  | { kind: 'reused' }
  /** The message of the first request is not stored, or not by a majority yet. */
  | { kind: 'running' }
  /** The message of the first request was never stored: its claim has to be released for this request. */
  | { kind: 'abandoned'; claim: ClaimedKey };

/** Requests with the same hash have the same body, byte for byte. SHA-256, hex. */
export function bodyHashOf(body: Buffer): string {
  return hash('sha256', body, 'hex');
}

/** `found` is null when no stored message has the key, and none has claimed it. */
export function keyUseOf(found: KeyHolder | ClaimedKey | null, bodyHash: string): KeyUse {
  if (!found) return { kind: 'first' };
  if (found.kind === 'claimed') {
    const isAbandoned = found.ageMs >= CLAIM_LASTS_MS;
    return isAbandoned ? { kind: 'abandoned', claim: found } : { kind: 'running' };
  }
  const holder = found;
  if (holder.ageMs >= KEPT_MS) return { kind: 'expired', holder };
  return holder.bodyHash === bodyHash ? { kind: 'repeat', holder } : { kind: 'reused' };
}
