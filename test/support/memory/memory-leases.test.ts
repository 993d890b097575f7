import { leaseContract } from '../contract/lease-contract.ts';
import { createMemoryLeases } from './memory-leases.ts';

leaseContract(() => {
  const leases = createMemoryLeases();
  return Promise.resolve({
    leases,
    expire: (name) => Promise.resolve(void leases.holders.delete(name)),
    close: () => Promise.resolve(),
  });
});
