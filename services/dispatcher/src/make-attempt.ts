import { withoutResponse, type Attempt } from '@posthorn/domain/message/delivery.ts';
import { lastingHeaders } from '@posthorn/domain/records/record-headers.ts';
import type { DueAttempt } from '@posthorn/domain/records/records.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import { traceparentOf } from '@posthorn/domain/request/traceparent.ts';
import { retryAfterMsOf } from '@posthorn/domain/schedule/retry-after.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { AttemptReport, Place } from './isolation/queues/admission.ts';
import { findCancelReason, findTarget } from './load/find-target.ts';
import type { LoadedWebhook, LoadWebhook } from './load/load-webhook.ts';
import type { HeldLease } from './once/attempt-leases.ts';
import type { SendWebhook } from './sending/send-webhook.ts';
import type { AccessTokens, SharedAnswer } from './sending/tokens/access-tokens.ts';
import type { SettledAttempt } from './settle/settle-delivery.ts';

/** What became of an attempt that was given a place. */
export type Made =
  | SettledAttempt
  /** The message is not stored any more, so that nothing can be sent. */
  | { kind: 'message_missing' }
  /** The webhook was changed, or its endpoint asked for a hold meanwhile: the attempt enters again. */
  | { kind: 'start_over' }
  /** This process was suspended or the work hung, and the attempt may have been made meanwhile. */
  | { kind: 'claim_again' }
  /** Our proxy failed before anything was sent, or the host of the token server has no start left. */
  | { kind: 'defer'; because: 'proxy' | 'host'; turnAtMs: number };

/** What an attempt holds while its request is made. */
export interface Rights {
  place: Place;
  lease: Pick<HeldLease, 'begin'>;
}

/** Uses the place for one request. The place is free again when the promise resolves. */
export type MakeAttempt = (record: LogRecord, due: DueAttempt, rights: Rights) => Promise<Made>;

export interface MakeAttemptDeps {
  loadWebhook: LoadWebhook;
  send: SendWebhook;
  tokens: Pick<AccessTokens, 'get'>;
  /** How long an attempt is deferred when our proxy failed. */
  proxyRetryMs: number;
  nowMs: () => number;
}

export function createMakeAttempt(deps: MakeAttemptDeps): MakeAttempt {
  return async (record, due, rights) => {
    let sent: Sent | null = null;
    try {
      const payload = due.payload ?? (await loadPayload(due, rights.place));
      if (!payload) return { kind: 'message_missing' };
      const ready = await beginAuthorized(deps, due, rights);
      if (ready.kind !== 'send' && ready.kind !== 'token_failed') return ready;
      sent = await complete(deps, ready, { record, due, payload });
    } finally {
      await rights.place.end(sent && reportOf(sent.attempt, deps.nowMs()));
    }
    return sent ? settledAttempt(deps, record, due, sent) : proxyFailed(deps);
  };
}

/** Into the memory that its place came with. */
function loadPayload({ messageId }: DueAttempt, { payload }: Place): Promise<Buffer | null> {
  // Taken for a missing message, it would end its delivery.
  if (!payload)
    throw new ImpossibleError('an attempt without its payload has no memory to load it');
  return payload.load(messageId);
}

/** An attempt with what the statistics need to know of it. */
type Sent = Pick<SettledAttempt, 'attempt' | 'appId' | 'payloadBytes'>;

/** Null when our proxy failed. */
async function complete(
  deps: MakeAttemptDeps,
  ready: Ready | TokenFailed,
  request: Request,
): Promise<Sent | null> {
  const { appId } = ready.to.webhook;
  if (ready.kind === 'token_failed') return { attempt: ready.attempt, appId, payloadBytes: 0 };
  const attempt = await send(deps, ready, request);
  return attempt && { attempt, appId, payloadBytes: request.payload.length };
}

interface Request {
  record: LogRecord;
  due: DueAttempt;
  payload: Buffer;
}

/** An endpoint that answers 401 does not take the token any more; the next attempt gets another one. */
async function send(
  deps: MakeAttemptDeps,
  { to, token }: Ready,
  { record, due, payload }: Request,
): Promise<Attempt | null> {
  const traceparent = traceparentOf(record.headers.traceparent);
  const attempt = await deps.send(due, payload, to, traceparent, token?.value);
  if (attempt?.statusCode === 401) token?.refuse();
  return attempt;
}

/** The request may be made now. */
interface Ready {
  kind: 'send';
  to: LoadedWebhook;
  /** For a webhook with `oauth2`. */
  token?: UsableToken;
}

interface UsableToken extends Pick<SharedAnswer, 'refuse'> {
  value: string;
}

interface TokenFailed {
  kind: 'token_failed';
  to: LoadedWebhook;
  attempt: Attempt;
}

type Stopped = Extract<Made, { kind: 'start_over' | 'claim_again' | 'defer' }>;

/** Finds the target again right before the request: the attempt may have waited in its queue, and for its token. */
async function begin(
  { loadWebhook }: MakeAttemptDeps,
  due: DueAttempt,
  { place, lease }: Rights,
): Promise<Ready | Stopped> {
  const target = await findTarget(loadWebhook, due);
  if (!lease.begin()) return { kind: 'claim_again' };
  if (target.kind !== 'send' || !place.begin()) return { kind: 'start_over' };
  return target;
}

/**
 * For a webhook with `oauth2`, gets its token too. The place is held meanwhile, as with an egress proxy that
 * hangs: a slow token server slows its own webhooks down, and nothing else is learned from it.
 */
async function beginAuthorized(
  deps: MakeAttemptDeps,
  due: DueAttempt,
  rights: Rights,
): Promise<Ready | Stopped | TokenFailed> {
  const begun = await begin(deps, due, rights);
  if (begun.kind !== 'send') return begun;
  const { authMethod, companyId, updatedAtMs } = begun.to.webhook;
  if (authMethod.method !== 'oauth2') return begun;
  const startedAtMs = deps.nowMs();
  const shared = await deps.tokens.get(companyId, authMethod);
  if (!shared) return proxyFailed(deps);
  const { answer, refuse } = shared;
  if (answer.kind === 'later') {
    return { kind: 'defer', because: 'host', turnAtMs: answer.turnAtMs };
  }
  if (answer.kind === 'failed') {
    const durationMs = Math.max(0, deps.nowMs() - startedAtMs);
    const attempt = { ...abortedAttempt(due, startedAtMs), durationMs };
    return { kind: 'token_failed', to: begun.to, attempt: withoutToken(attempt, answer.reason) };
  }
  const again = await begin(deps, due, rights);
  if (again.kind !== 'send') return again;
  // Changed meanwhile: the token may be of other credentials, or for another endpoint.
  if (again.to.webhook.updatedAtMs !== updatedAtMs) return { kind: 'start_over' };
  return { ...again, token: { value: answer.value, refuse } };
}

function withoutToken(attempt: Attempt, failureReason: string): Attempt {
  return { ...attempt, outcome: 'token_failed', failureReason };
}

/** Nothing is reported of the endpoint, and no attempt of the schedule is used up. */
function proxyFailed({ nowMs, proxyRetryMs }: MakeAttemptDeps): Extract<Made, { kind: 'defer' }> {
  return { kind: 'defer', because: 'proxy', turnAtMs: nowMs() + proxyRetryMs };
}

/** What the attempt showed of its endpoint. */
function reportOf({ outcome, statusCode, responseHeaders }: Attempt, nowMs: number): AttemptReport {
  return { outcome, statusCode, retryAfterMs: retryAfterMsOf(responseHeaders, nowMs) };
}

/**
 * After a failure the webhook is asked for again: when it was deleted or disabled during the attempt,
 * the delivery ends now and not when its retry is due.
 */
async function settledAttempt(
  { loadWebhook }: MakeAttemptDeps,
  { headers }: LogRecord,
  due: DueAttempt,
  { attempt, ...counted }: Sent,
): Promise<SettledAttempt> {
  const isSuccess = attempt.outcome === 'success';
  return {
    kind: 'attempted',
    due,
    attempt: due.omitsResponses ? withoutResponse(attempt) : attempt,
    ...counted,
    headers: lastingHeaders(headers),
    cancelReason: isSuccess ? null : await findCancelReason(loadWebhook, due.webhookId),
    isRecorded: false,
  };
}

/** An attempt that failed by a fault of ours before anything was sent. */
export function abortedAttempt(
  { attemptId: id, attemptNumber: number, trigger }: DueAttempt,
  nowMs: number,
): Attempt {
  return {
    id,
    number,
    trigger,
    outcome: 'aborted',
    statusCode: null,
    response: null,
    responseHeaders: [],
    startedAtMs: nowMs,
    durationMs: 0,
  };
}
