import { randomInt } from 'node:crypto';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import type {
  DeliveryDocument,
  MessageDocument,
} from '@posthorn/platform/mongo/documents/documents.ts';

const WORDS =
  'red blue green small large steel oak linen glass copper shirt table lamp chair mug'.split(' ');
const word = (): string => WORDS[randomInt(WORDS.length)] ?? '';

/** An order of eight lines, about 830 bytes. No two are alike. */
function payload(): string {
  const lines = Array.from({ length: 8 }, () => ({
    sku: `${word()}-${randomInt(1_000_000)}`,
    title: `${word()} ${word()} ${word()}`,
    quantity: randomInt(1, 20),
    price: randomInt(100, 99_999) / 100,
  }));
  const customer = {
    id: randomInt(10_000_000),
    email: `${word()}.${randomInt(99_999)}@example.com`,
  };
  return JSON.stringify({ event: 'order.paid', number: randomInt(100_000_000), customer, lines });
}

/** Whose message it is. */
export interface SampleOwner {
  companyId: string;
  appId: string;
  webhookId: string;
}

/** What a sample message is, and what became of it. */
interface SampleMade {
  messageId: string;
  createdAt: Date;
  eventType?: string;
  status?: 'delivered' | 'exhausted';
}

/** Chooses one of 50 companies, each with one webhook. */
export function sampleOwner(): SampleOwner {
  const owner = randomInt(50);
  return {
    companyId: `comp_01m87v64vk00000000000000${String(owner).padStart(2, '0')}`,
    appId: `app_01m87v64vk000000000000000${owner % 10}`,
    webhookId: `wh_01m87v64vk00000000000000${String(owner).padStart(2, '0')}`,
  };
}

/** A message to one webhook, with its delivery, which ended with the first attempt. */
export function sampleDocuments(
  { webhookId, ...owner }: SampleOwner,
  { messageId, createdAt, eventType, status = 'delivered' }: SampleMade,
): { message: MessageDocument; delivery: DeliveryDocument } {
  const common = { ...owner, createdAt };
  const message: MessageDocument = {
    _id: messageId,
    ...common,
    payload: payload(),
    targets: [webhookId],
    publisherId: 'gw_01m87v64vk0000000000000000',
    requestId: crypto.randomUUID(),
    ...(eventType !== undefined && { eventType }),
  };
  const deliveryId = deliveryIdOf(messageId, webhookId);
  const isGood = status === 'delivered';
  const delivery: DeliveryDocument = {
    _id: deliveryId,
    messageId,
    webhookId,
    ...common,
    status,
    reason: null,
    attemptCount: 1,
    attempts: [
      {
        id: attemptIdOf(deliveryId, 1),
        number: 1,
        trigger: 'first',
        outcome: isGood ? 'success' : 'http_5xx',
        statusCode: isGood ? 200 : 503,
        response: isGood ? 'ok' : 'try again later',
        responseHeaders: [{ key: 'content-type', value: 'text/plain' }],
        startedAt: createdAt,
        durationMs: randomInt(2, 200),
      },
    ],
    nextAttemptAt: null,
    updatedAt: createdAt,
  };
  return { message, delivery };
}
