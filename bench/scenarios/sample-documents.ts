import { randomInt } from 'node:crypto';
import { deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import type {
  DeliveryDocument,
  MessageDocument,
} from '@posthorn/platform/mongo/documents/documents.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';

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

/** A message of one of 50 companies to one webhook, with its delivery, which succeeded at once. */
export function sampleDocuments(): { message: MessageDocument; delivery: DeliveryDocument } {
  const _id = systemIds('msg');
  const owner = randomInt(50);
  const companyId = `comp_01m87v64vk00000000000000${String(owner).padStart(2, '0')}`;
  const appId = `app_01m87v64vk000000000000000${owner % 10}`;
  const webhookId = `wh_01m87v64vk00000000000000${String(owner).padStart(2, '0')}`;
  const createdAt = new Date();
  const common = { companyId, appId, createdAt };
  const message: MessageDocument = {
    _id,
    ...common,
    payload: payload(),
    targets: [webhookId],
    publisherId: 'gw_01m87v64vk0000000000000000',
    requestId: crypto.randomUUID(),
  };
  const delivery: DeliveryDocument = {
    _id: deliveryIdOf(_id, webhookId),
    messageId: _id,
    webhookId,
    ...common,
    status: 'delivered',
    reason: null,
    attemptCount: 1,
    attempts: [
      {
        id: systemIds('att'),
        number: 1,
        trigger: 'first',
        outcome: 'success',
        statusCode: 200,
        response: 'ok',
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
