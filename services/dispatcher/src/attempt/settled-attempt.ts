import { type Attempt, type Ending, withoutResponse } from '@posthorn/domain/delivery/delivery.ts';
import { endingOf, exhaustReasonOf } from '@posthorn/domain/delivery/ending.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { EVENT_TYPE_HEADER, lastingHeaders } from '@posthorn/domain/records/record-headers.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { SettledAttempt } from '../settle.ts';
import { findCancelReason, type LoadedWebhook, type LoadWebhook } from '../webhooks.ts';
import {
  type DueRecord,
  expiryBeforeNext,
  type ExpiryDeps,
  type WhenToSendDeps,
} from './when-to-send.ts';

/** The attempt was made, or failed because there was no token. */
export interface Made extends Pick<SettledAttempt, 'kind' | 'attempt' | 'payloadBytes'> {
  to: LoadedWebhook;
}

export interface SettledAttemptDeps
  extends Pick<WhenToSendDeps, 'isErased' | 'cancellations'>, ExpiryDeps {
  loadWebhook: LoadWebhook;
}

/**
 * Resolves with what is to be recorded of an attempt that was made. After a failure the webhook is looked up again: when it
 * was deleted or disabled during the attempt, the delivery ends now and not when its retry is due. So it does when a client
 * has cancelled it by a filter, and when its message expires before that. A response that ends the delivery comes first: the
 * webhook may be disabled because of it.
 */
export async function toSettled(
  deps: SettledAttemptDeps,
  { record, due }: DueRecord,
  { attempt, to, payloadBytes }: Made,
): Promise<SettledAttempt> {
  // A resend makes one attempt, and a failure of it changes nothing.
  const ending = due.trigger === 'resend' ? null : endingOf(to.webhook, attempt);
  const isDecided = attempt.outcome === 'success' || exhaustReasonOf(ending) !== null;
  const isStored = !due.omitsResponses && !deps.isErased(due.messageId);
  const kept = isStored ? attempt : withoutResponse(attempt);
  return {
    ...settledOf(record, due, endedBy(ending, kept)),
    appId: to.webhook.appId,
    payloadBytes,
    cancelReason: isDecided
      ? null
      : ((await findCancelReason(deps.loadWebhook, due)) ??
        deps.cancellations.reasonFor(due, record.headers[EVENT_TYPE_HEADER]) ??
        (ending ? null : expiryBeforeNext(deps, due, attempt))),
  };
}

/** An attempt whose request was not made here. */
export function settledOf(
  { headers }: LogRecord,
  due: DueAttempt,
  attempt: Attempt,
): SettledAttempt {
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

export function endedBy(ending: Ending | null, attempt: Attempt): Attempt {
  return ending ? { ...attempt, ending } : attempt;
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
