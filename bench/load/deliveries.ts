import type { DeliveryRef } from '@posthorn/domain/delivery/delivery.ts';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { inWorkers } from './loops.ts';

/** The owner of the deliveries, which go round its webhooks. */
export interface Owner {
  companyId: string;
  appId: string;
  webhookIds: readonly string[];
}

const DURATION_MS = 5;

export function newDeliveries(
  { companyId, appId, webhookIds }: Owner,
  count: number,
): DeliveryRef[] {
  const createdAtMs = Date.now();
  return Array.from({ length: count }, (_, n) => ({
    messageId: systemIds('msg'),
    webhookId: requiredAt(webhookIds, n % webhookIds.length, 'webhook'),
    companyId,
    appId,
    createdAtMs,
  }));
}

/** Stores each delivery in the state after a failed first attempt: pending. */
export async function storeFailed(
  store: Pick<DeliveryStore, 'insertAll'>,
  deliveries: readonly DeliveryRef[],
  delayMs: number,
): Promise<void> {
  await inWorkers(deliveries.length, { size: 1_000, atOnce: 4 }, async (from, length) => {
    const page = deliveries.slice(from, from + length);
    await store.insertAll(page.map((ref) => failedOnce(ref, delayMs)));
  });
}

function failedOnce(ref: DeliveryRef, delayMs: number) {
  const id = deliveryIdOf(ref.messageId, ref.webhookId);
  const updatedAtMs = ref.createdAtMs + DURATION_MS;
  return {
    ...ref,
    id,
    status: 'pending' as const,
    reason: null,
    updatedAtMs,
    nextAttemptAtMs: updatedAtMs + delayMs,
    attempt: {
      id: attemptIdOf(id, 1),
      number: 1,
      trigger: 'first' as const,
      outcome: 'http_5xx' as const,
      statusCode: 500,
      response: 'no',
      responseHeaders: [],
      startedAtMs: ref.createdAtMs,
      durationMs: DURATION_MS,
    },
  };
}
