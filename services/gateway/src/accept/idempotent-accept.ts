import { hash } from 'node:crypto';
import type { Message } from '@posthorn/domain/message.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import { Counter, type Registry } from 'prom-client';
import type { AcceptMessage, NewMessage } from './accept-message.ts';
import type { CreatedMessage } from '../http/answers/message.ts';
import { ApiError } from '../http/api-error.ts';
import type { KeptAnswers } from './sealed-answers.ts';

export interface AcceptOnceDeps {
  accept: AcceptMessage['accept'];
  messages: Pick<MessageQueries, 'findByKey' | 'releaseKey'>;
  answers: Pick<KeptAnswers, 'open'>;
  registry: Registry;
  nowMs: () => number;
}

export interface KeyedRequest {
  message: Omit<NewMessage, 'idempotency'>;
  /** Undefined when the client sent no key. */
  key: string | undefined;
  /** The whole body as it came; compared byte for byte. */
  bytes: Buffer;
}

export interface AnswerOnce {
  data: CreatedMessage;
  /** True when this is the first request's answer again. */
  isReplayed: boolean;
}

export type AcceptOnce = (request: KeyedRequest) => Promise<AnswerOnce>;

const KEPT_MS = 86_400_000;

/**
 * Makes repeats of a request safe. The key lies in the message itself under a unique index, so one
 * write accepts and claims at once: no crash can leave a key without its message. Throws ApiError
 * 409 while the first request is not decided, 422 when its body was another one.
 */
export function createAcceptOnce(deps: AcceptOnceDeps): AcceptOnce {
  const lookups = new Counter({
    name: 'posthorn_idempotency_lookups_total',
    help: 'Requests with an idempotency key, by what was found.',
    labelNames: ['result'],
    registers: [deps.registry],
  });
  return async ({ message, key, bytes }) => {
    if (key === undefined) {
      const data = await deps.accept({ ...message, idempotency: null });
      if (!data) throw new Error('a message without a key cannot repeat one');
      return { data, isReplayed: false };
    }
    const bodyHash = hash('sha256', bytes, 'hex');
    const keyed = { ...message, idempotency: { key, bodyHash } };
    const first = await findFirst(deps, keyed.companyId, key);
    const data = first ? null : await deps.accept(keyed);
    lookups.inc({ result: data ? 'new' : 'repeated' });
    if (data) return { data, isReplayed: false };
    const earlier = first ?? (await findFirst(deps, keyed.companyId, key));
    return { data: replay(deps, earlier, bodyHash), isReplayed: true };
  };
}

/** The message that holds the key, unless it is older than the 24 hours that a key is kept. */
async function findFirst(
  { messages, nowMs }: AcceptOnceDeps,
  companyId: string,
  key: string,
): Promise<Message | null> {
  const found = await messages.findByKey(companyId, key);
  if (!found || nowMs() - found.createdAtMs < KEPT_MS) return found;
  await messages.releaseKey(companyId, found.id);
  return null;
}

function replay(
  { answers }: AcceptOnceDeps,
  earlier: Message | null,
  bodyHash: string,
): CreatedMessage {
  if (!earlier?.idempotency) {
    throw new ApiError(
      409,
      'idempotency_key_running',
      'The first request with this Idempotency-Key is still running; send it again in a moment.',
      { headers: { 'Retry-After': '1' } },
    );
  }
  if (earlier.idempotency.bodyHash !== bodyHash) {
    throw new ApiError(
      422,
      'idempotency_key_reused',
      'This Idempotency-Key was used with another body; use a new key for a new message.',
    );
  }
  return answers.open(earlier);
}
