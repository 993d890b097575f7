import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import type { DeliveryStatus } from '@posthorn/domain/message/delivery.ts';
import { settleCancelled } from '@posthorn/domain/delivery-lifecycle/settlement.ts';
import { countingIds, sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { createDeliveryStore } from '../deliveries/deliveries.ts';
import { createEraseDelivered } from './erase-payloads.ts';
import { createMessageStore } from './messages.ts';

const newId = countingIds();
let database: ScratchDatabase;

beforeAll(async () => {
  database = await openScratchDatabase();
});

afterAll(() => database.drop());

/** Stores a message whose deliveries have these statuses; null for one without a document. */
async function plant(...statuses: (DeliveryStatus | null)[]): Promise<string> {
  const targets = statuses.map((_, n) => `wh_${n}`);
  const message = sampleMessage(newId('msg'), { targets, erasesPayload: true });
  const { id: messageId, companyId, createdAtMs } = message;
  await createMessageStore(database.db).insertAll([message]);
  for (const [n, status] of statuses.entries()) {
    if (status === null) continue;
    const webhookId = `wh_${n}`;
    const deliveryId = deliveryIdOf(messageId, webhookId);
    const ref = { deliveryId, messageId, webhookId, companyId, appId: null, createdAtMs };
    const settled = { ...settleCancelled(ref, 'webhook_deleted', 1), status, reason: null };
    await createDeliveryStore(database.db).insertAll([settled]);
  }
  return messageId;
}

it('only payloads of which every delivery is delivered are erased, once', async () => {
  const store = createMessageStore(database.db);
  const erased = [await plant('delivered'), await plant('delivered', 'delivered')];
  const kept = [
    await plant(),
    await plant(null),
    await plant('delivered', null),
    ...[await plant('delivered', 'pending'), await plant('delivered', 'exhausted')],
    await plant('cancelled'),
  ];
  const erase = createEraseDelivered(database.db);
  await erase([...erased, ...kept, 'msg_none']);
  await erase([...erased, ...kept]);
  await erase([]);
  expect([...(await store.payloadsOf([...erased, ...kept])).keys()].sort()).toEqual(kept.sort());
  const read = await store.findCommitted([...erased, ...kept]);
  const gone = read.filter(({ isPayloadErased }) => isPayloadErased);
  expect(gone.map(({ id, payload }) => [id, payload])).toEqual(erased.map((id) => [id, '']));
});
