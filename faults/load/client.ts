import { Pool } from 'undici';
import type { Answer } from '../audit/evidence.ts';

/** One message to send, and for which company. */
export interface Outgoing {
  apiKey: string;
  body: string;
  /** With a key the request is repeated until it is accepted. */
  idempotencyKey: string | null;
}

export interface Client {
  /** Returns the answer for the message, after all repetitions. */
  send: (outgoing: Outgoing) => Promise<Answer>;
  /** How often each answer came: a status, or why there was none. */
  answers: () => Readonly<Record<string, number>>;
  /** The longest time to an answer, or to the end of a connection without one, in milliseconds. */
  slowestMs: () => number;
  close: () => Promise<void>;
}

/** The gateways, as a load balancer knows them. */
export interface ClientOptions {
  baseUrls: readonly string[];
  /** Ends repetitions. */
  signal: AbortSignal;
}

const CONNECTIONS = 256;
/** Longer than a gateway may take; an answer after that counts as lost. */
const ANSWER_WITHIN_MS = 30_000;
const REPEATED_WITHIN_MS = 60_000;
const REPEAT_AFTER_MS = 250;
export const REFUSED_CONNECTION = 'connection refused';
/** Before any byte of a response: the gateway may have read the request. */
export const CLOSED_CONNECTION = 'connection closed';
export const NO_ANSWER = 'no answer';

interface State {
  pools: Pool[];
  answers: Record<string, number>;
  turn: number;
  slowestMs: number;
  /** Ends repetitions. */
  signal: AbortSignal;
  isClosed: boolean;
}

/** Sends to the gateways in turn; one that refuses the connection is skipped, as a load balancer does. */
export function createClient({ baseUrls, signal }: ClientOptions): Client {
  const pools = baseUrls.map(
    (url) => new Pool(url, { connections: CONNECTIONS, connectTimeout: 5_000 }),
  );
  const state: State = { pools, answers: {}, turn: 0, slowestMs: 0, signal, isClosed: false };
  return {
    send: (outgoing) => sendUntilKnown(state, outgoing),
    answers: () => state.answers,
    slowestMs: () => state.slowestMs,
    async close() {
      state.isClosed = true;
      await Promise.all(pools.map((pool) => pool.destroy()));
    },
  };
}

async function sendUntilKnown(state: State, outgoing: Outgoing): Promise<Answer> {
  const endsAtMs = performance.now() + REPEATED_WITHIN_MS;
  for (;;) {
    const answer = await sendOnce(state, outgoing);
    const mayRepeat = outgoing.idempotencyKey !== null && !state.signal.aborted && !state.isClosed;
    if (answer.kind === 'accepted' || !mayRepeat || performance.now() > endsAtMs) return answer;
    await new Promise((resolve) => setTimeout(resolve, REPEAT_AFTER_MS));
  }
}

async function sendOnce(state: State, outgoing: Outgoing): Promise<Answer> {
  const { pools, answers } = state;
  for (const each of pools) {
    const pool = pools[state.turn++ % pools.length] ?? each;
    const startedMs = performance.now();
    const answer = await post(pool, outgoing);
    state.slowestMs = Math.max(state.slowestMs, performance.now() - startedMs);
    const name = typeof answer === 'string' ? answer : answer.name;
    answers[name] = (answers[name] ?? 0) + 1;
    if (typeof answer !== 'string') return answer.answer;
    if (answer !== REFUSED_CONNECTION) return { kind: 'unknown', why: answer };
  }
  // Every gateway refused the connection, so nothing was sent.
  return { kind: 'refused', status: 0 };
}

type Posted = Unanswered | { name: string; answer: Answer };

type Unanswered = typeof REFUSED_CONNECTION | typeof CLOSED_CONNECTION | typeof NO_ANSWER;

async function post(pool: Pool, { apiKey, body, idempotencyKey }: Outgoing): Promise<Posted> {
  const headers: Record<string, string> = {
    'x-api-key': apiKey,
    'content-type': 'application/json',
  };
  if (idempotencyKey !== null) headers['idempotency-key'] = idempotencyKey;
  try {
    const response = await pool.request({
      method: 'POST',
      path: '/webhook-messages',
      headers,
      body,
      headersTimeout: ANSWER_WITHIN_MS,
      bodyTimeout: ANSWER_WITHIN_MS,
    });
    return answered(response.statusCode, await response.body.text());
  } catch (error) {
    return whyUnanswered(error);
  }
}

/** A 503 may come after the message was stored, and a 409 while the first request with its key is still running. */
function answered(status: number, text: string): Posted {
  const name = String(status);
  const id = /"data":\{"id":"([^"]+)"/.exec(text)?.[1];
  if (status === 202 && id !== undefined) {
    return { name, answer: { kind: 'accepted', messageId: id } };
  }
  const isUnknown = status >= 500 || status === 409 || status === 202;
  return { name, answer: isUnknown ? { kind: 'unknown', why: name } : { kind: 'refused', status } };
}

function whyUnanswered(error: unknown): Unanswered {
  switch ((error as { code?: string }).code ?? '') {
    case 'ECONNREFUSED':
    case 'UND_ERR_CONNECT_TIMEOUT':
      return REFUSED_CONNECTION;
    case 'ECONNRESET':
    case 'EPIPE':
    case 'UND_ERR_SOCKET':
      return CLOSED_CONNECTION;
    default:
      return NO_ANSWER;
  }
}
