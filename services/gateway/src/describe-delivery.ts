import { endedAtMs, type Attempt, type Delivery } from '@posthorn/domain/delivery.ts';

/** ISO 8601 in UTC with milliseconds, as every time in the API. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** The fields of an attempt that the contract names (spec, Webhook message). */
export function describeAttempt(attempt: Attempt): object {
  return {
    id: attempt.id,
    processed: true,
    resend: attempt.trigger === 'resend',
    statusCode: attempt.statusCode,
    response: attempt.response,
    createdAt: isoTime(attempt.startedAtMs),
    updatedAt: isoTime(endedAtMs(attempt)),
  };
}

/** `data` of GET deliveries/{id}: every attempt with what became of it. */
export function describeDelivery(delivery: Delivery): object {
  const { id, messageId, webhookId, status, reason, attempts, nextAttemptAtMs } = delivery;
  return {
    id,
    messageId,
    webhookId,
    status,
    reason,
    attemptCount: attempts.length,
    nextAttemptAt: nextAttemptAtMs === null ? null : isoTime(nextAttemptAtMs),
    attempts: attempts.map((attempt) => ({
      ...describeAttempt(attempt),
      number: attempt.number,
      outcome: attempt.outcome,
      durationMs: attempt.durationMs,
      responseHeaders: attempt.responseHeaders,
    })),
    createdAt: isoTime(delivery.createdAtMs),
    updatedAt: isoTime(delivery.updatedAtMs),
  };
}
