import { withoutResponse, type Attempt } from '@posthorn/domain/delivery.ts';
import { lastingHeaders } from '@posthorn/domain/records/record-headers.ts';
import type { DueAttempt } from '@posthorn/domain/records/records.ts';
import { traceparentOf } from '@posthorn/domain/request/traceparent.ts';
import { retryAfterMsOf } from '@posthorn/domain/schedule/retry-after.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { AttemptReport, Place } from './isolation/queues/admission.ts';
import { findCancelReason, findTarget } from './load/find-target.ts';
import type { LoadWebhook } from './load/load-webhook.ts';
import type { HeldPayload, PayloadMemory } from './load/payload-memory.ts';
import type { HeldLease } from './once/attempt-leases.ts';
import type { SendWebhook } from './sending/send-webhook.ts';
import type { SettledAttempt } from './settle/settle-delivery.ts';

/** What became of an attempt that was given a place. */
export type Made =
  | SettledAttempt
  /** The message is not stored any more, so that nothing can be sent. */
  | { kind: 'message missing' }
  /** The webhook was changed, or its endpoint asked for a hold meanwhile: the attempt enters again. */
  | { kind: 'start over' }
  /** This process was suspended, and another one may have made the attempt meanwhile. */
  | { kind: 'claim again' }
  /** Our proxy failed before anything was sent. */
  | { kind: 'defer'; because: 'proxy'; turnAtMs: number };

/** What an attempt holds while its request is made. */
export interface Rights {
  place: Place;
  lease: Pick<HeldLease, 'hasLapsed'>;
}

/** Uses the place for one request. The place is free again when the promise resolves. */
export type MakeAttempt = (record: LogRecord, due: DueAttempt, rights: Rights) => Promise<Made>;

export interface MakeAttemptDeps {
  payloads: PayloadMemory;
  loadWebhook: LoadWebhook;
  send: SendWebhook;
  /** How long an attempt waits that our proxy failed. */
  proxyRetryMs: number;
  nowMs: () => number;
}

export function createMakeAttempt(deps: MakeAttemptDeps): MakeAttempt {
  return async (record, due, { place, lease }) => {
    let attempt: Attempt | null = null;
    let held: HeldPayload | null = null;
    try {
      if (!due.payload) held = await deps.payloads.hold(due.companyId, due.messageId);
      const payload = due.payload ?? held?.payload;
      if (!payload) return { kind: 'message missing' };
      // Asked again right before the request: the attempt may have waited for seconds in its queue.
      const target = await findTarget(deps.loadWebhook, due);
      if (lease.hasLapsed()) return { kind: 'claim again' };
      if (target.kind !== 'send' || !place.begin()) return { kind: 'start over' };
      const traceparent = traceparentOf(record.headers.traceparent);
      attempt = await deps.send(due, payload, target.to, traceparent);
    } finally {
      held?.release();
      await place.end(attempt && reportOf(attempt, deps.nowMs()));
    }
    return attempt ? settledAttempt(deps, record, due, attempt) : proxyFailed(deps);
  };
}

/** Nothing is reported of the endpoint, and no attempt of the schedule is used up. */
function proxyFailed({ nowMs, proxyRetryMs }: MakeAttemptDeps): Made {
  return { kind: 'defer', because: 'proxy', turnAtMs: nowMs() + proxyRetryMs };
}

/** What the attempt showed of its endpoint. */
function reportOf({ outcome, statusCode, responseHeaders }: Attempt, nowMs: number): AttemptReport {
  const mayHold = statusCode === 429 || statusCode === 503;
  return {
    outcome,
    statusCode,
    retryAfterMs: mayHold ? retryAfterMsOf(responseHeaders, nowMs) : null,
  };
}

/**
 * After a failure the webhook is asked for again: when it was deleted or disabled during the attempt,
 * the delivery ends now and not when its retry is due.
 */
async function settledAttempt(
  { loadWebhook }: MakeAttemptDeps,
  { headers }: LogRecord,
  due: DueAttempt,
  attempt: Attempt,
): Promise<SettledAttempt> {
  const isSuccess = attempt.outcome === 'success';
  return {
    kind: 'attempted',
    due,
    attempt: due.omitsResponses ? withoutResponse(attempt) : attempt,
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
