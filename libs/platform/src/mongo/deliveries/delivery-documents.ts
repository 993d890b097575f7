import type { Attempt, Delivery } from '@posthorn/domain/delivery.ts';
import type { AttemptDocument, DeliveryDocument } from '../documents.ts';

/** A delivery with the one attempt just made, or with none when it is cancelled before its first. */
export type SettledDelivery = Omit<Delivery, 'attempts' | 'attemptCount'> & {
  attempt: Attempt | null;
};

export function toDocument(settled: SettledDelivery): DeliveryDocument {
  const { id, attempt, createdAtMs, updatedAtMs, nextAttemptAtMs, ...rest } = settled;
  return {
    _id: id,
    ...rest,
    attemptCount: attempt?.number ?? 0,
    attempts: attempt ? [toAttemptDocument(attempt)] : [],
    nextAttemptAt: nextAttemptAtMs === null ? null : new Date(nextAttemptAtMs),
    createdAt: new Date(createdAtMs),
    updatedAt: new Date(updatedAtMs),
  };
}

export function toAttemptDocument({ startedAtMs, ...rest }: Attempt): AttemptDocument {
  return { ...rest, startedAt: new Date(startedAtMs) };
}

export function toDelivery(document: DeliveryDocument): Delivery {
  const { _id, attempts, nextAttemptAt, createdAt, updatedAt } = document;
  const { messageId, webhookId, companyId, appId, status, reason, attemptCount } = document;
  return {
    id: _id,
    messageId,
    webhookId,
    companyId,
    appId,
    status,
    reason,
    attemptCount,
    attempts: attempts.map(toAttempt),
    nextAttemptAtMs: nextAttemptAt?.getTime() ?? null,
    createdAtMs: createdAt.getTime(),
    updatedAtMs: updatedAt.getTime(),
  };
}

export function toAttempt({ startedAt, ...attempt }: AttemptDocument): Attempt {
  return { ...attempt, startedAtMs: startedAt.getTime() };
}
