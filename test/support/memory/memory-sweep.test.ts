import { messageCheckContract } from '../contract/message-check-contract.ts';
import { stuckDeliveryContract } from '../contract/stuck-delivery-contract.ts';
import { createMemorySweep } from './memory-sweep.ts';

const DAY_MS = 86_400_000;

stuckDeliveryContract(() => {
  const { stuck, deliveryStore, deliveries } = createMemorySweep(Date.now());
  return Promise.resolve({
    stuck,
    deliveries: deliveryStore,
    clear() {
      deliveries.clear();
      return Promise.resolve();
    },
    close: () => Promise.resolve(),
  });
});

messageCheckContract(() => {
  const { checks, deliveryStore, messages, keepFor } = createMemorySweep(Date.now());
  return Promise.resolve({
    checks,
    deliveries: deliveryStore,
    insert: (batch) => Promise.resolve(messages.push(...batch)),
    keepFor(days) {
      keepFor(days * DAY_MS);
      return Promise.resolve();
    },
    close: () => Promise.resolve(),
  });
});
