import { LEASE_MS } from '@posthorn/platform/mongo/leases.ts';
import { leaseContract } from '../../support/contract/lease-contract.ts';
import { publisherContract } from '../../support/contract/publisher-contract.ts';
import { INSTANT_PROCESS } from './simulated-process.ts';
import { createSimulatedPublishers } from './simulated-publishers.ts';

/** Opens the stores with a clock that only `advance` moves. */
function open() {
  let nowMs = 0;
  const stores = createSimulatedPublishers({ nowMs: () => nowMs }).connectedTo(INSTANT_PROCESS);
  const advance = (ms: number): Promise<void> => {
    nowMs += ms;
    return Promise.resolve();
  };
  return { ...stores, advance, close: () => Promise.resolve() };
}

leaseContract(() => {
  const { leases, advance, close } = open();
  return Promise.resolve({ leases, expire: () => advance(LEASE_MS + 1), close });
});

publisherContract(() => Promise.resolve(open()));
