import { deliveryContract } from '../contract/delivery-contract.ts';
import { createMemoryDeliveries } from './memory-deliveries.ts';

deliveryContract(() => {
  const store = createMemoryDeliveries();
  return Promise.resolve({
    store,
    read: (id) => Promise.resolve(store.stored.get(id)),
    close: () => Promise.resolve(),
  });
});
