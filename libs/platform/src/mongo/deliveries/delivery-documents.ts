import type { Attempt, Delivery } from '@posthorn/domain/delivery/delivery.ts';
import { notStoredOf } from '@posthorn/domain/message.ts';
import type { SettledDelivery } from '@posthorn/domain/delivery/settlement.ts';
import type { AttemptDocument, DeliveryDocument } from '../documents/documents.ts';

/** Translates between deliveries and their documents, in which times are dates. */

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
    ...notStoredOf(document),
  };
}

export function toAttempt({ startedAt, ...attempt }: AttemptDocument): Attempt {
  return { ...attempt, startedAtMs: startedAt.getTime() };
}
