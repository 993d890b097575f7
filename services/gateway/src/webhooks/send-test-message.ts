import type { AcceptMessage } from '../accept/accept-message.ts';
import { readDelivery, type ReadDelivery, type ReadStores } from '../history/read-delivery.ts';
import { notFound } from '../http/api-error.ts';
import type { TakeTurn } from '../http/turns/turns.ts';

export interface SendTestDeps extends ReadStores {
  accept: AcceptMessage['accept'];
  nowMs: () => number;
}

export interface TestRequest {
  companyId: string;
  webhookId: string;
  requestId: string;
  takeTurn: TakeTurn;
}

/** Accepts a small message to one webhook and returns its delivery. Throws ApiError 404 for an unknown webhook. */
export type SendTestMessage = (request: TestRequest) => Promise<ReadDelivery>;

export function createSendTestMessage(deps: SendTestDeps): SendTestMessage {
  const { accept, nowMs } = deps;
  return async ({ companyId, webhookId, requestId, takeTurn }) => {
    const sentAt = new Date(nowMs()).toISOString();
    const accepted = await accept({
      companyId,
      address: { kind: 'webhook', webhookId },
      eventType: null,
      requestId,
      idempotency: null,
      isTest: true,
      payload: JSON.stringify({ type: 'webhook.test', webhookId, sentAt }),
    });
    const [delivery] = accepted?.deliveries ?? [];
    if (!delivery) throw new Error('a message to one webhook has one delivery');
    const found = await readDelivery({ ...deps, takeTurn }, companyId, delivery.id);
    if (!found) throw notFound('webhook');
    return found;
  };
}
