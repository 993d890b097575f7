import {
  DISABLED_AT_ACCEPTANCE,
  MESSAGE_MISSING,
  WEBHOOK_REMOVED,
} from '@posthorn/domain/delivery/when-cancelled.ts';
import {
  type Attempt,
  type CancelReason,
  withoutResponse,
} from '@posthorn/domain/delivery/delivery.ts';
import {
  DEFERRED_SINCE_HEADER,
  lastingHeaders,
  readMs,
} from '@posthorn/domain/records/record-headers.ts';
import {
  decodeMessageCreated,
  decodeRetryDue,
  type DueAttempt,
  payloadlessValue,
  readRecord,
  UnreadableRecordError,
} from '@posthorn/domain/records/records.ts';
import { traceparentOf } from '@posthorn/domain/request/traceparent.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import { retryAfterMsOf } from '@posthorn/domain/delivery/schedule.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { DeadLetters } from '@posthorn/platform/records/dead-letters.ts';
import type { ConsumeOptions, IsOurs, LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { Held, RecordMemory } from '@posthorn/platform/memory/memory-budgets.ts';
import type { HeldLease, OutcomeQueue } from './attempt-leases.ts';
import { type Defer, type MoveToSlowLane, turnAtOf } from './defer.ts';
import type { Admission, AttemptReport, Place, QueueKind } from './isolation/gate.ts';
import type { Queues } from './isolation/queues.ts';
import type { DoubleSendGuard, Remaining } from './prevent-double-send.ts';
import type { AccessTokens, SharedAnswer } from './sending/access-tokens.ts';
import type { SendWebhook } from './sending/send-webhook.ts';
import type { ErasePayloads, Settle, Settled, SettledAttempt } from './settle.ts';
import {
  findCancelReason,
  findTarget,
  type LoadedWebhook,
  type LoadWebhook,
  type Target,
} from './webhooks.ts';

interface AttemptDeps extends EnterQueueDeps {
  messageCreatedTopic: string;
  deadLetters: DeadLetters;
  memory: Pick<RecordMemory, 'hold'>;
  doubleSends: DoubleSendGuard;
  loadWebhook: LoadWebhook;
  /** Whether the company is removed, or is being removed. */
  isCompanyRemoved: (companyId: string) => Promise<boolean>;
  makeAttempt: MakeAttempt;
  moveToSlowLane: MoveToSlowLane;
  defer: Defer;
  settleDelivery: Settle;
  settleResend: Settle;
  erasePayloads: ErasePayloads;
}

/** Everything that can become of a due attempt. */
type Disposition =
  | Exclude<Remaining, { kind: 'send' }>
  | Exclude<Target, { kind: 'send' }>
  | Exclude<Admission, { kind: 'place' }>
  | Exclude<Made, { kind: 'start_over' | 'claim_again' }>;

/**
 * Attempt: one record becomes one request to the endpoint, or another disposition applies.
 * Resolves when that is stored and published; then the offset of the record may be committed.
 */
export function createAttemptDelivery(deps: AttemptDeps): ConsumeOptions['handle'] {
  return async (record, isOurs) => {
    const due = readRecord(() => decode(deps, record));
    if (due instanceof UnreadableRecordError) {
      await deps.deadLetters.put(record, 'unreadable_record', due.message);
      return;
    }
    const held = deps.memory.hold(record.value.length);
    try {
      await attemptOnce(deps, { record, due, held, isOurs });
    } finally {
      held.release();
    }
  };
}

function decode({ messageCreatedTopic }: AttemptDeps, { topic, value }: LogRecord): DueAttempt {
  return topic === messageCreatedTopic ? decodeMessageCreated(value) : decodeRetryDue(value);
}

async function attemptOnce(deps: AttemptDeps, underWay: AttemptUnderWay): Promise<void> {
  const { record, due, isOurs } = underWay;
  for (;;) {
    const { remaining, lease } = await deps.doubleSends.claim(record, due, isOurs);
    try {
      const outcome =
        remaining.kind === 'send' ? await attemptWithLease(deps, underWay, lease) : remaining;
      if (outcome.kind === 'claim_again') continue;
      if (outcome.kind === 'attempted') lease.markMade(outcomeQueueOf(due));
      await apply(deps, underWay, outcome);
      return;
    } finally {
      lease.release();
    }
  }
}

/** Sends the request, or finds out why it is not to be sent now. Changes nothing else. */
async function attemptWithLease(
  deps: AttemptDeps,
  underWay: AttemptUnderWay,
  lease: HeldLease,
): Promise<Disposition | { kind: 'claim_again' }> {
  const { record, due } = underWay;
  if (due.isCancelled) return { kind: 'cancel', reason: DISABLED_AT_ACCEPTANCE };
  for (;;) {
    const target = await findTarget(deps.loadWebhook, due);
    if (target.kind === 'cancel' && (await isOfRemoved(deps, target.reason, due))) return DROP;
    if (target.kind !== 'send') return target;
    const admission = await enterQueue(deps, underWay, target.to.webhook);
    if (admission.kind !== 'place') return admission;
    const made = await deps.makeAttempt(record, due, { place: admission.place, lease });
    if (made.kind !== 'start_over') return made;
  }
}

const DROP = { kind: 'drop' } as const;

/** A company is removed with its webhooks. Nothing may be recorded for it any more. */
function isOfRemoved(
  { isCompanyRemoved }: AttemptDeps,
  reason: CancelReason,
  { companyId }: DueAttempt,
): Promise<boolean> {
  return reason === WEBHOOK_REMOVED ? isCompanyRemoved(companyId) : Promise.resolve(false);
}

/** The one place where an attempt has consequences. */
async function apply(
  deps: AttemptDeps,
  { record, due, held }: AttemptUnderWay,
  disposition: Disposition,
): Promise<void> {
  switch (disposition.kind) {
    // The request was made.
    case 'attempted':
      // The beginning of its response is in memory until it is stored.
      held.setTo(record.value.length + (disposition.attempt.response?.length ?? 0));
      return settle(deps, disposition);
    // It was recorded before, with all that follows from it; or the resend was given up, or the company removed.
    case 'drop':
      // Whoever recorded it may have died before the payload was erased or its message noted.
      return deps.erasePayloads([due]);
    // The attempt was recorded before, and its failure may not have been published.
    case 'publish_failure':
      return settle(deps, {
        kind: 'attempted',
        due,
        attempt: disposition.attempt,
        appId: due.appId,
        payloadBytes: 0,
        headers: lastingHeaders(record.headers),
        cancelReason: null,
        isRecorded: true,
      });
    // The webhook is deleted or disabled.
    case 'cancel':
      return settle(deps, { kind: 'cancelled', due, reason: disposition.reason });
    case 'message_missing':
      await deps.deadLetters.put(record, 'message_missing', 'the message is not stored any more');
      return settle(deps, { kind: 'cancelled', due, reason: MESSAGE_MISSING });
    // Written by a program with our keys and a fault, or restored from another database.
    case 'company_mismatch':
      return deps.deadLetters.put(
        record,
        'company_mismatch',
        'the webhook belongs to another company',
      );
    // The request cannot be signed: a failure like any other, with its retry.
    case 'abort':
      return settle(deps, {
        kind: 'attempted',
        due,
        attempt: abortedAttempt(due, deps.nowMs()),
        appId: disposition.appId,
        payloadBytes: 0,
        headers: lastingHeaders(record.headers),
        cancelReason: null,
        isRecorded: false,
      });
    // The endpoint takes a second or longer: out of the way of the others.
    case 'slow_lane':
      return deps.moveToSlowLane(record, due);
    // The endpoint cannot take it now, or our proxy fails. No attempt of the schedule is used up.
    case 'defer':
      return deps.defer(record, due, disposition);
  }
}

function outcomeQueueOf({ trigger }: DueAttempt): OutcomeQueue {
  return trigger === 'resend' ? 'resend' : 'delivery';
}

/** A resend has a mark instead of a schedule, and leaves the status of its delivery when it fails. */
function settle(deps: AttemptDeps, settled: Settled): Promise<void> {
  switch (outcomeQueueOf(settled.due)) {
    case 'resend':
      return deps.settleResend(settled);
    case 'delivery':
      return deps.settleDelivery(settled);
  }
}

/** A record, what it says, the memory that it takes, and whether its partition is still read here. */
interface AttemptUnderWay {
  record: LogRecord;
  due: DueAttempt;
  held: Held;
  isOurs: IsOurs;
}

interface EnterQueueDeps {
  queues: Pick<Queues, 'enter'>;
  slowLaneTopic: string;
  nowMs: () => number;
}

/** Resolves when the attempt has a place at its endpoint, or must leave. */
function enterQueue(
  { queues, slowLaneTopic, nowMs }: EnterQueueDeps,
  underWay: AttemptUnderWay,
  { id, url, rateLimitPerSecond }: Webhook,
): Promise<Admission> {
  const { record, due } = underWay;
  return queues.enter({
    webhookId: id,
    companyId: due.companyId,
    url,
    queue: record.topic === slowLaneTopic ? 'slow' : queueKindOf(due),
    trigger: due.trigger,
    rateLimitPerSecond,
    turnAtMs: turnAtOf(record, nowMs()),
    deferredSinceMs: readMs(record.headers, DEFERRED_SINCE_HEADER),
    hasPayload: () => due.payload !== null,
    dropPayload: () => {
      dropPayload(underWay);
    },
  });
}

function queueKindOf({ trigger }: DueAttempt): QueueKind {
  return trigger === 'first' || trigger === 'test' ? 'first' : 'retry';
}

/** Value and payload are slices of one fetch. Either of them would keep all of it in memory. */
function dropPayload({ record, due, held }: AttemptUnderWay): void {
  if (!due.payload) return;
  record.value = payloadlessValue(record.value);
  due.payload = null;
  held.setTo(record.value.length);
}

/** What became of an attempt that was given a place. */
type Made =
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
interface Rights {
  place: Place;
  lease: Pick<HeldLease, 'begin'>;
}

/** Uses the place for one request. The place is free again when the promise resolves. */
type MakeAttempt = (record: LogRecord, due: DueAttempt, rights: Rights) => Promise<Made>;

interface MakeAttemptDeps {
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
  const attempt = await sendRequest(deps, ready, request);
  return attempt && { attempt, appId, payloadBytes: request.payload.length };
}

interface Request {
  record: LogRecord;
  due: DueAttempt;
  payload: Buffer;
}

/** An endpoint that answers 401 does not take the token any more; the next attempt gets another one. */
async function sendRequest(
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
