import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { DeliveryRef } from '@posthorn/domain/delivery/delivery.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { SettledDelivery } from '@posthorn/domain/delivery/settlement.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';

/** The owner of the deliveries, which go round its webhooks. */
export interface Owner {
  companyId: string;
  appId: string;
  webhookIds: readonly string[];
}

const PAGE = 1_000;
const PAGES_AT_ONCE = 4;
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
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < deliveries.length) {
      const page = deliveries.slice(next, next + PAGE);
      next += PAGE;
      await store.insertAll(page.map((ref) => failedOnce(ref, delayMs)));
    }
  };
  await Promise.all(Array.from({ length: PAGES_AT_ONCE }, worker));
}

function failedOnce(ref: DeliveryRef, delayMs: number): SettledDelivery {
  const id = deliveryIdOf(ref.messageId, ref.webhookId);
  const updatedAtMs = ref.createdAtMs + DURATION_MS;
  return {
    ...ref,
    id,
    status: 'pending',
    reason: null,
    updatedAtMs,
    nextAttemptAtMs: updatedAtMs + delayMs,
    attempt: {
      id: attemptIdOf(id, 1),
      number: 1,
      trigger: 'first',
      outcome: 'http_5xx',
      statusCode: 500,
      response: 'no',
      responseHeaders: [],
      startedAtMs: ref.createdAtMs,
      durationMs: DURATION_MS,
    },
  };
}
