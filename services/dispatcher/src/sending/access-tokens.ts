import {
  readTokenAnswer,
  type TokenAnswer,
  tokenRequestOf,
} from '@posthorn/domain/request/access-token.ts';
import type { OAuth2Client } from '@posthorn/domain/webhook.ts';
import { createClosingCache, CoalescingCache } from '@posthorn/platform/memory/coalescing-cache.ts';
import { monotonicClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { createHash } from 'node:crypto';
import { BOOK_AHEAD_MS } from '../isolation/gate.ts';
import { hostKeyOf } from '../isolation/host-pace.ts';
import type { Agent } from './connect/connections.ts';
import { type ExchangeDeps, post } from './send-webhook.ts';

/** The answer of a token server, for all attempts that share it. */
export interface SharedAnswer {
  /** `later`: the token server may not be asked before this time, in milliseconds since 1970. */
  answer: TokenAnswer | { kind: 'later'; reservedAtMs: number };
  /** To be called when an endpoint refuses the token: the next attempt gets another one. */
  refuse: () => void;
}

export interface AccessTokens {
  /** Resolves with a token that is still usable, or with a failure; with null when our proxy failed. */
  get: (companyId: string, client: OAuth2Client) => Promise<SharedAnswer | null>;
  /** Bytes that the cache holds. */
  usedBytes: () => number;
}

interface AccessTokensDeps {
  requestToken: RequestToken;
  /** Called before each token request. */
  pace: PaceTokenRequest;
  /** The size that the cache may have. */
  cacheBytes: number;
  /** The shortest time from a failed attempt to its retry. */
  firstRetryMs: number;
  nowMs: () => number;
  /** Returns milliseconds above 0; the clock of the process unless given. */
  monotonicMs?: () => number;
}

/** A failure is kept at least this long: a token server that fails at once would get a request for every attempt. */
const MIN_FAILURE_TTL_MS = 250;
/** A failure is kept for at most this share of the first retry delay, so that the retry of its attempt asks again. */
const FAILURE_TTL_SHARE = 0.8;
/** A `later` is forgotten this long before its time, because a deferred attempt may come early by another clock. */
const ASKED_AGAIN_MS = 250;
/** Size of an entry without its token. */
const ENTRY_BYTES = 512;

interface KeptAnswer extends SharedAnswer {
  keptForMs: number;
}

/** Caches tokens by company and credentials. Attempts that need one at the same time share one request. */
export function createAccessTokens(deps: AccessTokensDeps): AccessTokens {
  const { cacheBytes, monotonicMs = monotonicClockMs } = deps;
  const cache = new CoalescingCache<KeptAnswer>({
    maxSize: cacheBytes,
    sizeOf: ({ answer }) => ENTRY_BYTES + lengthOf(answer),
    ttlMs: ({ keptForMs }) => keptForMs,
    monotonicMs,
  });
  const load = async (key: string, companyId: string, client: OAuth2Client) => {
    const found = await ask({ ...deps, monotonicMs }, { companyId, client });
    const forget = (): void => {
      cache.forget(key);
    };
    return found && { ...found, refuse: once(forget) };
  };
  return {
    get(companyId, client) {
      const key = keyOf(companyId, client);
      return cache.get(key, () => load(key, companyId, client));
    },
    usedBytes: () => cache.usedSize(),
  };
}

interface Wanted {
  companyId: string;
  client: OAuth2Client;
}

async function ask(
  { requestToken, pace, firstRetryMs, nowMs, monotonicMs }: Required<AccessTokensDeps>,
  { companyId, client }: Wanted,
): Promise<Omit<KeptAnswer, 'refuse'> | null> {
  const inMs = pace(companyId, client.tokenUrl);
  if (inMs > 0) {
    const keptForMs = inMs - ASKED_AGAIN_MS;
    return { answer: { kind: 'later', reservedAtMs: Math.ceil(nowMs() + inMs) }, keptForMs };
  }
  const startedMs = monotonicMs();
  const answer = await requestToken(client);
  if (!answer) return null;
  if (answer.kind === 'token') return { answer, keptForMs: answer.usableForMs };
  return { answer, keptForMs: failureTtlMs(monotonicMs() - startedMs, firstRetryMs) };
}

/**
 * A failure is kept for as long as its request took: attempts held their slots for that time, and those that
 * come in the same time after it fail at once.
 */
function failureTtlMs(requestMs: number, firstRetryMs: number): number {
  return Math.min(Math.max(MIN_FAILURE_TTL_MS, requestMs), firstRetryMs * FAILURE_TTL_SHARE);
}

function lengthOf(answer: SharedAnswer['answer']): number {
  if (answer.kind === 'later') return 0;
  return answer.kind === 'token' ? answer.value.length : answer.reason.length;
}

/** Many attempts may hold a token that is refused. Only the first refusal drops it; a second would drop the next token. */
function once(act: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) act();
    isDone = true;
  };
}

/** Returns a hash, so that no key of the cache is a secret. Other credentials, or another scope, need another token. */
function keyOf(companyId: string, client: OAuth2Client): string {
  const { tokenUrl, clientId, clientSecret, scope, audience, clientAuthentication } = client;
  const parts = [
    companyId,
    tokenUrl,
    clientId,
    clientSecret,
    scope,
    audience,
    clientAuthentication,
  ];
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}

/** The results of token requests. The values are labels of `posthorn_token_requests_total`. */
export const TOKEN_RESULTS = [
  'token',
  // The token server failed, or gave no token.
  'failed',
  // The egress proxy failed. This is never charged to the token server.
  'fault',
] as const;

export type TokenResult = (typeof TOKEN_RESULTS)[number];

/**
 * Makes one token request. Resolves with null when our proxy failed. Never rejects.
 */
type RequestToken = (client: OAuth2Client) => Promise<TokenAnswer | null>;

interface RequestTokenDeps extends ExchangeDeps {
  agent: Agent;
  userAgent: string;
  onResult: (result: TokenResult) => void;
}

/** A token has at most 8 KiB, and the other fields are short. What is longer is no JSON when it is cut. */
const KEPT_BYTES = 32_768;

export function createRequestToken(deps: RequestTokenDeps): RequestToken {
  return async (client) => {
    const answer = await sendTokenRequest(deps, client);
    deps.onResult(answer?.kind ?? 'fault');
    return answer;
  };
}

async function sendTokenRequest(
  deps: RequestTokenDeps,
  client: OAuth2Client,
): Promise<TokenAnswer | null> {
  const { origin, pathname, search } = new URL(client.tokenUrl);
  const { headers: fields, body } = tokenRequestOf(client);
  const headers = [...Object.entries(fields).flat(), 'user-agent', deps.userAgent];
  const options = { origin, path: pathname + search, headers, body };
  const exchange = await post(deps, () => ({ agent: deps.agent, options }), {
    keptBytes: KEPT_BYTES,
  });
  if (!exchange) return null;
  const { outcome, statusCode, response } = exchange;
  if (statusCode === null) {
    return { kind: 'failed', reason: `no answer from the token server: ${outcome}` };
  }
  return readTokenAnswer(statusCode, response ?? '');
}

/**
 * Counts a token request of the company to the host of this URL, when it may be made now, and returns 0.
 * Otherwise makes a reservation and returns the milliseconds until then.
 */
export type PaceTokenRequest = (companyId: string, tokenUrl: string) => number;

interface TokenPaceDeps {
  /** Token requests of one company to one host, a whole number; 0 for no limit. */
  perSecond: number;
  monotonicMs: () => number;
}

/** The token requests of one company to one host. Times are monotonic. */
interface Pace {
  /** When all requests so far have had their share of the limit. */
  freeMs: number;
  /** Turns up to here are booked. */
  bookedUntilMs: number;
}

/** Requests of one second may be made at once: the limit is per second. */
const BURST_MS = 1_000;
/** Companies and hosts that are remembered, at 200 bytes. */
const MAX_PACES = 10_000;

/**
 * Many webhooks with different credentials may name one host as their token server: each of their attempts
 * would be a request to it, past the limit of attempts to that host.
 */
export function createTokenPace({ perSecond, monotonicMs }: TokenPaceDeps): PaceTokenRequest {
  if (perSecond === 0) return () => 0;
  const spacingMs = 1_000 / perSecond;
  const paces = createClosingCache<Pace>(MAX_PACES, () => undefined);
  return (companyId, tokenUrl) => {
    const pace = paces.get(hostKeyOf(companyId, tokenUrl), () => ({ freeMs: 0, bookedUntilMs: 0 }));
    const nowMs = monotonicMs();
    const freeMs = Math.max(pace.freeMs, nowMs) + spacingMs;
    if (freeMs <= nowMs + BURST_MS) {
      pace.freeMs = freeMs;
      return 0;
    }
    pace.bookedUntilMs = Math.max(pace.bookedUntilMs, nowMs + BOOK_AHEAD_MS) + spacingMs;
    return pace.bookedUntilMs - nowMs;
  };
}
