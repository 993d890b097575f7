import { CREATED_GONE_AFTER_MS } from '@posthorn/domain/records/topics.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { RequestedErasures } from '@posthorn/platform/mongo/messages/requested-erasures.ts';
import type { SequenceStore } from '@posthorn/platform/mongo/messages/sequences.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import { notFound } from '../api-error.ts';
import { readDelivery, type ReadDeps } from './deliveries.ts';
import { goOnBehind } from './go-on-behind.ts';
import { requireMessage } from './messages.ts';

interface EraseDeps extends ReadDeps {
  messages: Pick<MessageQueries, 'findOne' | 'outlinesAt'>;
  erasures: Pick<RequestedErasures, 'note' | 'eraseMessage' | 'eraseResponses'>;
  invalidate: Invalidate;
  sequences: Pick<SequenceStore, 'makeDue'>;
  nowMs: () => number;
}

interface ErasedPayload {
  /** Until when Kafka has the payload, in milliseconds since 1970; null when it has not. */
  kafkaUntilMs: number | null;
}

/**
 * Erases the payload of a message and the responses of its deliveries, and cancels those that are pending. The note comes
 * first and is announced: dispatchers send nothing of the message from then on. Throws ApiError 404 for an unknown
 * message.
 */
export async function erasePayload(
  deps: EraseDeps,
  companyId: string,
  messageId: string,
): Promise<ErasedPayload> {
  const { erasures, invalidate, nowMs, nextSlice } = deps;
  const message = await requireMessage(deps, companyId, messageId);
  await erasures.note(messageId);
  await invalidate({ companyId, id: messageId });
  const atMs = nowMs();
  const { isInRecords } = await erasures.eraseMessage(messageId, {
    atMs,
    betweenSlices: nextSlice,
  });
  await goOnBehind(deps, message, message.targets);
  const untilMs = message.createdAtMs + CREATED_GONE_AFTER_MS;
  return { kafkaUntilMs: isInRecords && untilMs > atMs ? untilMs : null };
}

/** Erases the responses that a delivery has now. Throws ApiError 404 for an unknown delivery. */
export async function eraseResponses(
  deps: EraseDeps,
  companyId: string,
  deliveryId: string,
): Promise<void> {
  if (!(await readDelivery(deps, companyId, deliveryId))) throw notFound('delivery');
  await deps.erasures.eraseResponses([deliveryId]);
}
