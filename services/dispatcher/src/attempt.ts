import {
  type Attempt,
  type CancelReason,
  endedAtMs,
  type Ending,
  withoutResponse,
} from '@posthorn/domain/delivery/delivery.ts';
import {
  disabledReasonOf,
  endingOf,
  exhaustReasonOf,
  hasAllAttempts,
} from '@posthorn/domain/delivery/ending.ts';
import {
  nextAttemptAfter,
  retryAfterMsOf,
  type RetrySchedule,
} from '@posthorn/domain/delivery/schedule.ts';
import {
  DISABLED_AT_ACCEPTANCE,
  expiryReasonAt,
  MESSAGE_MISSING,
  PAYLOAD_ERASED,
  WEBHOOK_REMOVED,
} from '@posthorn/domain/delivery/when-cancelled.ts';
import {
  DEFERRED_SINCE_HEADER,
  EVENT_TYPE_HEADER,
  lastingHeaders,
  readMs,
} from '@posthorn/domain/records/record-headers.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { readRecord, UnreadableRecordError } from '@posthorn/domain/records/record-value.ts';
import { decodeMessageCreated, payloadlessValue } from '@posthorn/domain/records/records.ts';
import { decodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import { traceparentOf } from '@posthorn/domain/request/traceparent.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import type { OAuth2Client } from '@posthorn/domain/webhook.ts';
import type { DeadLetters } from '@posthorn/platform/records/dead-letters.ts';
import type { IsOurs, LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { Held, RecordMemory } from '@posthorn/platform/memory/memory-budgets.ts';
import type { HeldLease, OutcomeQueue } from './attempt-leases.ts';
import { type Defer, type MoveToSlowLane, reservedAtOf } from './defer.ts';
import type { Cancellations } from './cancellations.ts';
import type { Admission, AttemptReport, Candidate, Slot, QueueKind } from './isolation/gate.ts';
import type { Queues } from './isolation/queues.ts';
import type { DoubleSendGuard, EnterRecord, Remaining } from './prevent-double-send.ts';
import type { Place } from './order/sequence-in-memory.ts';
import type { Sequences } from './order/sequences.ts';
import type { AccessTokens } from './sending/access-tokens.ts';
import type { SendWebhook } from './sending/send-webhook.ts';
import type { ErasePayloads, Settle, SettledAttempt } from './settle.ts';
import {
  type DisableByEndpoint,
  findCancelReason,
  findTarget,
  type LoadedWebhook,
  type Target,
  type TargetDeps,
} from './webhooks.ts';

export interface AttemptDeps extends TargetDeps {
  messageCreatedTopic: string;
  slowLaneTopic: string;
  memory: Pick<RecordMemory, 'hold'>;
  doubleSends: DoubleSendGuard;
  sequences: Pick<Sequences, 'enter' | 'wake'>;
  disableWebhook: DisableByEndpoint;
  /** Whether the company is removed, or is being removed. */
  isCompanyRemoved: (companyId: string) => Promise<boolean>;
  /** Whether a client has just erased the payload of the message. */
  isErased: (messageId: string) => boolean;
  cancellations: Pick<Cancellations, 'reasonFor'>;
  queues: Pick<Queues, 'enter'>;
  tokens: Pick<AccessTokens, 'get'>;
  send: SendWebhook;
  /** How long an attempt is deferred when our proxy failed. */
  proxyRetryMs: number;
  schedule: RetrySchedule;
  settle: Readonly<Record<OutcomeQueue, Settle>>;
  erasePayloads: ErasePayloads;
  moveToSlowLane: MoveToSlowLane;
  defer: Defer;
  deadLetters: DeadLetters;
  nowMs: () => number;
}

/** A record, the attempt that it asks for, the memory that it takes, and whether its partition is still read here. */
interface AttemptUnderWay {
  record: LogRecord;
  due: DueAttempt;
  held: Held;
  isOurs: IsOurs;
  /** Its place behind earlier deliveries; null without an ordering key. */
  place: Place | null;
}

/** Every end of a due attempt. */
type Disposition =
  | Exclude<Remaining, { kind: 'send' }>
  | Exclude<Target, { kind: 'send' }>
  | Exclude<Admission, { kind: 'slot' }>
  | SettledAttempt
  /** The time of its message is still to come. */
  | { kind: 'too_early'; untilMs: number }
  /** The message is not stored any more, so that nothing can be sent. */
  | { kind: 'message_missing' }
  /** Our proxy failed before anything was sent, or the host of the token server has no start left. */
  | { kind: 'defer'; because: 'proxy' | 'host'; reservedAtMs: number };

/**
 * While the attempt waited, its lease may have ended and another process have made it, its webhook was changed, its
 * message was erased or has expired, or its endpoint asked for a pause.
 */
const START_OVER = { kind: 'start_over' } as const;

/**
 * Attempt: one record becomes one request to the endpoint, or another disposition applies. The record gets its place among
 * those with its ordering key at once. The function that is returned resolves when everything is stored and published; then
 * the offset of the record may be committed.
 */
export function createAttemptDelivery(deps: AttemptDeps): EnterRecord {
  return (record, isOurs) => {
    const due = readRecord(() => decode(deps, record));
    if (due instanceof UnreadableRecordError) {
      return () => deps.deadLetters.put(record, 'unreadable_record', due.message);
    }
    const place = deps.sequences.enter({ record, due, isOurs });
    return async () => {
      const held = deps.memory.hold(record.value.length);
      try {
        await attemptInPlace(deps, { record, due, held, isOurs, place });
      } finally {
        held.release();
      }
    };
  };
}

/** Waits for what is in front of the attempt. When it has ended, the next one is in memory, published, or missing. */
async function attemptInPlace(deps: AttemptDeps, underWay: AttemptUnderWay): Promise<void> {
  const { place } = underWay;
  if (!place) return attempt(deps, underWay);
  const dropOwn = (): void => {
    dropPayload(underWay);
  };
  try {
    if ((await place.turn(dropOwn)) === 'done') return;
    await attempt(deps, underWay);
    await place.end();
  } catch (error) {
    place.fail();
    throw error;
  }
}

function decode({ messageCreatedTopic }: AttemptDeps, { topic, value }: LogRecord): DueAttempt {
  return topic === messageCreatedTopic ? decodeMessageCreated(value) : decodeRetryDue(value);
}

async function attempt(deps: AttemptDeps, underWay: AttemptUnderWay): Promise<void> {
  const { record, due, isOurs, place } = underWay;
  for (;;) {
    const { remaining, lease } = await deps.doubleSends.claim(record, due, isOurs);
    try {
      const disposition =
        remaining.kind === 'send' ? await sendOrDispose(deps, underWay, lease) : remaining;
      if (disposition.kind === 'start_over') continue;
      if (disposition.kind === 'attempted') lease.markMade(outcomeQueueOf(due));
      if (place) await moveOn(place, disposition);
      await apply(deps, underWay, disposition);
      if (due.trigger === 'resend' && isSuccess(disposition)) await deps.sequences.wake(due);
      return;
    } finally {
      lease.release();
    }
  }
}

function isSuccess(disposition: Disposition): boolean {
  return disposition.kind === 'attempted' && disposition.attempt.outcome === 'success';
}

/** The next one begins at once after a success. Otherwise the sequence is stored before the delivery. */
async function moveOn(place: Place, disposition: Disposition): Promise<void> {
  if (isSuccess(disposition)) place.succeeded();
  else if (mayStayPending(disposition)) await place.leave();
}

/** Whether the delivery may have further attempts after this one. */
function mayStayPending(disposition: Disposition): boolean {
  switch (disposition.kind) {
    case 'attempted':
      return disposition.cancelReason === null;
    case 'publish_failure':
    case 'wait':
    case 'too_early':
    case 'abort':
    case 'slow_lane':
    case 'defer':
      return true;
    case 'drop':
    case 'cancel':
    case 'message_missing':
    case 'company_mismatch':
      return false;
  }
}

/** Sends the request, or finds out why it is not to be sent now. Changes nothing else. */
async function sendOrDispose(
  deps: AttemptDeps,
  underWay: AttemptUnderWay,
  lease: HeldLease,
): Promise<Disposition | typeof START_OVER> {
  const { due } = underWay;
  const target = await findTarget(deps, due);
  if (target.kind === 'company_mismatch') return target;
  if (target.kind === 'cancel' && (await isOfRemoved(deps, target.reason, due))) return DROP;
  if (due.isCancelled) return { kind: 'cancel', reason: DISABLED_AT_ACCEPTANCE };
  if (target.kind === 'cancel') return target;
  const untimely = checkTimes(deps, underWay);
  if (untimely) return untimely;
  if (target.kind !== 'send') return target;
  const admission = await deps.queues.enter(candidateOf(deps, underWay, target.to));
  if (admission.kind !== 'slot') return admission;
  return useSlot(deps, underWay, { found: target.to, slot: admission.slot, lease });
}

const DROP = { kind: 'drop' } as const;

/** Returns how a due attempt ends, or waits, by what its message says; null when it may be made. */
function checkTimes(deps: AttemptDeps, underWay: AttemptUnderWay): Disposition | null {
  const { due } = underWay;
  const reason = endOf(deps, underWay);
  if (reason) return { kind: 'cancel', reason };
  const { deliverAtMs } = due;
  if (deliverAtMs === undefined || deliverAtMs <= deps.time.nowMs()) return null;
  // Released by a process that knows another time of the database: both are right after its next reply.
  if (due.isStored) deps.time.doubt();
  return { kind: 'too_early', untilMs: deliverAtMs };
}

/** Returns why nothing of the delivery may be sent any more; null while it may. A client may resend what has expired. */
function endOf(
  { isErased, cancellations, time }: Pick<AttemptDeps, 'isErased' | 'cancellations' | 'time'>,
  { record, due }: Pick<AttemptUnderWay, 'record' | 'due'>,
): CancelReason | null {
  const { messageId, trigger, expiresAtMs, removeAtMs } = due;
  if (isErased(messageId)) return PAYLOAD_ERASED;
  const cancelled = cancellations.reasonFor(due, record.headers[EVENT_TYPE_HEADER]);
  if (cancelled) return cancelled;
  if (expiresAtMs === undefined && removeAtMs === undefined) return null;
  const isResend = trigger === 'resend';
  const lifetime = { ...(!isResend && { expiresAtMs }), removeAtMs };
  return expiryReasonAt(lifetime, time.earlierMs());
}

/** Returns why nothing may be sent at a later time of this process's clock, if that is so by the database's clock too. */
function expiryAt(
  { time, nowMs }: AttemptDeps,
  due: DueAttempt,
  atMs: number,
): CancelReason | null {
  return expiryReasonAt(due, atMs - (nowMs() - time.earlierMs()));
}

/**
 * A company is removed with its webhooks. Nothing may be recorded for it any more. Its status is read only for a webhook
 * that is gone: the list of suspended companies has those that are being removed, not those that are gone.
 */
function isOfRemoved(
  { isCompanyRemoved }: AttemptDeps,
  reason: CancelReason,
  { companyId }: DueAttempt,
): Promise<boolean> {
  return reason === WEBHOOK_REMOVED ? isCompanyRemoved(companyId) : Promise.resolve(false);
}

function candidateOf(
  { slowLaneTopic, nowMs }: AttemptDeps,
  underWay: AttemptUnderWay,
  { webhook: { id, url, rateLimitPerSecond } }: LoadedWebhook,
): Candidate {
  const { record, due } = underWay;
  return {
    webhookId: id,
    companyId: due.companyId,
    url,
    queue: record.topic === slowLaneTopic ? 'slow' : queueKindOf(due),
    trigger: due.trigger,
    rateLimitPerSecond,
    reservedAtMs: reservedAtOf(record, nowMs()),
    deferredSinceMs: readMs(record.headers, DEFERRED_SINCE_HEADER),
    hasPayload: () => due.payload !== null,
    dropPayload: () => {
      dropPayload(underWay);
    },
  };
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

/** The rights of an attempt whose request is made. */
interface Rights {
  /** The webhook as it was before the attempt waited for its slot. */
  found: LoadedWebhook;
  slot: Slot;
  lease: Pick<HeldLease, 'begin'>;
}

/** The attempt was made, or failed because there was no token. */
interface Made extends Pick<SettledAttempt, 'kind' | 'attempt' | 'payloadBytes'> {
  to: LoadedWebhook;
}

type Requested =
  Made | Extract<Disposition, { kind: 'message_missing' | 'cancel' | 'defer' }> | typeof START_OVER;

/** Uses the slot for one request. The slot is free again when the promise resolves. */
async function useSlot(
  deps: AttemptDeps,
  underWay: AttemptUnderWay,
  rights: Rights,
): Promise<Disposition | typeof START_OVER> {
  let requested: Requested | null = null;
  try {
    requested = await request(deps, underWay, rights);
    if (requested.kind === 'attempted') await disableIfTold(deps, underWay, requested);
  } finally {
    const made = requested?.kind === 'attempted' ? requested.attempt : null;
    await rights.slot.end(made && reportOf(made, deps.nowMs()));
  }
  return requested.kind === 'attempted' ? toSettled(deps, underWay, requested) : requested;
}

/** The slot waits for it, so that no further request takes its place. */
async function disableIfTold(
  { disableWebhook }: AttemptDeps,
  { due }: AttemptUnderWay,
  { attempt, to: { webhook } }: Made,
): Promise<void> {
  const reason = disabledReasonOf(webhook, attempt);
  if (reason) await disableWebhook({ due, attempt, webhook, reason });
}

/** Reports the attempt to its endpoint. */
function reportOf({ outcome, statusCode, responseHeaders }: Attempt, nowMs: number): AttemptReport {
  return { outcome, statusCode, retryAfterMs: retryAfterMsOf(responseHeaders, nowMs) };
}

async function request(
  deps: AttemptDeps,
  underWay: AttemptUnderWay,
  rights: Rights,
): Promise<Requested> {
  const { record, due } = underWay;
  const { found, slot } = rights;
  const payload = due.payload ?? (await loadPayload(record, due, slot));
  if (!payload) return { kind: 'message_missing' };
  if (payload === 'erased') return { kind: 'cancel', reason: PAYLOAD_ERASED };
  const hasWaited = slot.hasWaited || slot.payload !== null;
  const to = await begin(deps, underWay, rights, hasWaited ? null : found);
  if (!to) return START_OVER;
  const ready = { record, due, payload, to };
  const { authMethod } = to.webhook;
  return authMethod.method === 'oauth2'
    ? sendWithToken(deps, ready, rights, authMethod)
    : send(deps, ready);
}

/** Loads it into the memory that its slot came with, and completes the headers of a record that was made without its message. */
async function loadPayload(
  record: LogRecord,
  { messageId }: DueAttempt,
  { payload }: Slot,
): Promise<Buffer | 'erased' | null> {
  // As a missing message, it would end its delivery.
  if (!payload)
    throw new ImpossibleError('an attempt without its payload has no memory to load it');
  const message = await payload.load(messageId);
  if (message === null || message === 'erased') return message;
  record.headers = { ...message.headers, ...record.headers };
  return message.bytes;
}

/**
 * Begins the request at its lease and its endpoint. Resolves with the webhook as it is now; null when the attempt has to
 * start over. The webhook is looked up again unless it is given: an attempt that has waited must not go to a webhook
 * that was disabled, deleted, changed or put on hold meanwhile.
 */
async function begin(
  deps: AttemptDeps,
  underWay: Pick<AttemptUnderWay, 'record' | 'due'>,
  { slot, lease }: Rights,
  known: LoadedWebhook | null,
): Promise<LoadedWebhook | null> {
  const { due } = underWay;
  const target = known ? { kind: 'send' as const, to: known } : await findTarget(deps, due);
  if (endOf(deps, underWay)) return null;
  const mayBegin = lease.begin() && target.kind === 'send' && slot.begin();
  return mayBegin ? target.to : null;
}

interface Ready {
  record: LogRecord;
  due: DueAttempt;
  payload: Buffer;
  to: LoadedWebhook;
}

async function send(deps: AttemptDeps, ready: Ready, accessToken?: string): Promise<Requested> {
  const { record, due, payload, to } = ready;
  const traceparent = traceparentOf(record.headers.traceparent);
  const eventType = record.headers[EVENT_TYPE_HEADER];
  const attempt = await deps.send(due, payload, to, { traceparent, eventType, accessToken });
  if (!attempt) return proxyFailed(deps);
  return { kind: 'attempted', attempt, to, payloadBytes: payload.length };
}

/** Nothing is reported of the endpoint, and no attempt of the schedule is used up. */
function proxyFailed({ nowMs, proxyRetryMs }: AttemptDeps): Requested {
  return { kind: 'defer', because: 'proxy', reservedAtMs: nowMs() + proxyRetryMs };
}

/**
 * The attempt keeps its slot while it waits for its token, as with an egress proxy that hangs: a slow token server
 * slows its own webhooks down, and nothing else is learned from it.
 */
async function sendWithToken(
  deps: AttemptDeps,
  ready: Ready,
  rights: Rights,
  client: OAuth2Client,
): Promise<Requested> {
  const { due, to } = ready;
  const startedAtMs = deps.nowMs();
  const shared = await deps.tokens.get(to.webhook.companyId, client);
  if (!shared) return proxyFailed(deps);
  const { answer, refuse } = shared;
  switch (answer.kind) {
    case 'later':
      return { kind: 'defer', because: 'host', reservedAtMs: answer.reservedAtMs };
    case 'failed': {
      const durationMs = Math.max(0, deps.nowMs() - startedAtMs);
      const aborted = { ...abortedAttempt(due, startedAtMs), durationMs };
      const attempt = {
        ...aborted,
        outcome: 'token_failed',
        failureReason: answer.reason,
      } as const;
      return { kind: 'attempted', attempt, to, payloadBytes: 0 };
    }
    case 'token': {
      const now = await begin(deps, ready, rights, null);
      // The token may be of other credentials, or for another endpoint.
      if (now?.webhook.updatedAtMs !== to.webhook.updatedAtMs) return START_OVER;
      const requested = await send(deps, { ...ready, to: now }, answer.value);
      // The endpoint does not accept the token any more; the next attempt gets another one.
      if (requested.kind === 'attempted' && requested.attempt.statusCode === 401) refuse();
      return requested;
    }
  }
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

/**
 * After a failure the webhook is looked up again: when it was deleted or disabled during the attempt,
 * the delivery ends now and not when its retry is due. So it does when a client has cancelled it by a filter, and when its
 * message expires before that. A response that
 * ends the delivery comes first: the webhook may be disabled because of it.
 */
async function toSettled(
  deps: AttemptDeps,
  { record, due }: AttemptUnderWay,
  { attempt, to, payloadBytes }: Made,
): Promise<SettledAttempt> {
  // A resend makes one attempt, and a failure of it changes nothing.
  const { loadWebhook, isErased, cancellations } = deps;
  const ending = due.trigger === 'resend' ? null : endingOf(to.webhook, attempt);
  const isDecided = attempt.outcome === 'success' || exhaustReasonOf(ending) !== null;
  const isStored = !due.omitsResponses && !isErased(due.messageId);
  const kept = isStored ? attempt : withoutResponse(attempt);
  return {
    ...settledOf(record, due, endedBy(ending, kept)),
    appId: to.webhook.appId,
    payloadBytes,
    cancelReason: isDecided
      ? null
      : ((await findCancelReason(loadWebhook, due)) ??
        cancellations.reasonFor(due, record.headers[EVENT_TYPE_HEADER]) ??
        (ending ? null : expiryBeforeNext(deps, due, attempt))),
  };
}

function endedBy(ending: Ending | null, attempt: Attempt): Attempt {
  return ending ? { ...attempt, ending } : attempt;
}

/** A resend has no next attempt. */
function expiryBeforeNext(
  deps: AttemptDeps,
  due: DueAttempt,
  attempt: Attempt,
): CancelReason | null {
  const hasEnd = due.expiresAtMs !== undefined || due.removeAtMs !== undefined;
  if (!hasEnd || due.trigger === 'resend') return null;
  const ended = { attemptNumber: attempt.number, endedAtMs: endedAtMs(attempt) };
  const next = nextAttemptAfter(ended, deps.schedule);
  return next && expiryAt(deps, due, next.dueAtMs);
}

/** An attempt whose request was not made here. */
function settledOf({ headers }: LogRecord, due: DueAttempt, attempt: Attempt): SettledAttempt {
  return {
    kind: 'attempted',
    due,
    attempt,
    appId: due.appId,
    payloadBytes: 0,
    headers: lastingHeaders(headers),
    cancelReason: null,
    isRecorded: false,
  };
}

/** The one place where an attempt has consequences. */
async function apply(
  deps: AttemptDeps,
  { record, due, held }: AttemptUnderWay,
  disposition: Disposition,
): Promise<void> {
  // A resend has a mark instead of a schedule, and leaves the status of its delivery when it fails.
  const settle = deps.settle[outcomeQueueOf(due)];
  switch (disposition.kind) {
    // The request was made.
    case 'attempted':
      // The beginning of its response is in memory until it is stored.
      held.setTo(record.value.length + (disposition.attempt.response?.length ?? 0));
      return settle(disposition);
    // It was recorded before, with all that follows from it; or the resend was given up, or the company removed.
    case 'drop':
      // Whoever recorded it may have died before the payload was erased or its message noted.
      return deps.erasePayloads([due]);
    // The attempt was recorded before, and its failure may not have been published.
    case 'publish_failure':
      return settle({ ...settledOf(record, due, disposition.attempt), isRecorded: true });
    // The webhook is deleted or disabled, or a client has cancelled what was pending.
    case 'cancel':
      return settle({ kind: 'cancelled', due, reason: disposition.reason });
    // A resend keeps its mark instead, and is published again when the hold has ended.
    case 'wait':
      return due.trigger === 'resend' ? undefined : settle({ kind: 'waiting', due, untilMs: null });
    case 'too_early':
      return settle({ kind: 'waiting', due, untilMs: disposition.untilMs });
    case 'message_missing':
      await deps.deadLetters.put(record, 'message_missing', 'the message is not stored any more');
      return settle({ kind: 'cancelled', due, reason: MESSAGE_MISSING });
    // Written by a program with our keys and a fault, or restored from another database.
    case 'company_mismatch':
      return deps.deadLetters.put(
        record,
        'company_mismatch',
        'the webhook belongs to another company',
      );
    // The request cannot be signed: a failure like any other, with its retry.
    case 'abort': {
      const isLast = due.trigger !== 'resend' && hasAllAttempts(disposition, due.attemptNumber);
      const attempt = endedBy(isLast ? 'max_attempts' : null, abortedAttempt(due, deps.nowMs()));
      return settle({ ...settledOf(record, due, attempt), appId: disposition.appId });
    }
    // The endpoint takes a second or longer: out of the way of the others.
    case 'slow_lane':
      return deps.moveToSlowLane(record, due);
    // The endpoint cannot take it now, or our proxy fails. No attempt of the schedule is used up.
    case 'defer': {
      const expiry =
        due.trigger === 'resend' ? null : expiryAt(deps, due, disposition.reservedAtMs);
      if (expiry) return settle({ kind: 'cancelled', due, reason: expiry });
      return deps.defer(record, due, disposition);
    }
  }
}

function outcomeQueueOf({ trigger }: DueAttempt): OutcomeQueue {
  return trigger === 'resend' ? 'resend' : 'delivery';
}
