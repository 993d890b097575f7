import { createDeliveryStore, toDelivery } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { DeliveryDocument } from '@posthorn/platform/mongo/documents.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createResendMarks } from '@posthorn/platform/mongo/webhooks/resend-marks.ts';
import { deliveryContract } from '../../support/contract/delivery-contract.ts';
import { finishedResendContract } from '../../support/contract/finished-resend-contract.ts';
import { messageStoreContract } from '../../support/contract/message-store-contract.ts';
import { INSTANT_PROCESS } from './simulated-process.ts';
import { createSimulatedMongo } from './simulated-mongo.ts';

/** Opens the simulated database for the real stores. */
function open() {
  const mongo = createSimulatedMongo(() => undefined);
  const read = (id: string): DeliveryDocument | undefined =>
    mongo.collection('deliveries').get(id) as DeliveryDocument | undefined;
  return { mongo, db: mongo.connectedTo(INSTANT_PROCESS), read, close: () => Promise.resolve() };
}

deliveryContract(() => {
  const { db, read, close } = open();
  return Promise.resolve({
    store: createDeliveryStore(db),
    read(id) {
      const found = read(id);
      return Promise.resolve(found && toDelivery(found));
    },
    close,
  });
});

messageStoreContract(() => {
  const { db, close } = open();
  return Promise.resolve({ store: createMessageStore(db), close });
});

finishedResendContract(() => {
  const { mongo, db, read, close } = open();
  return Promise.resolve({
    marks: createResendMarks(db),
    put(document) {
      mongo.collection('deliveries').set(document._id, { ...document });
      return Promise.resolve();
    },
    read: (id) => Promise.resolve(read(id) ?? null),
    close,
  });
});
