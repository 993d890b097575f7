import { setTimeout as wait } from 'node:timers/promises';
import { LEASE_MS, type LeaseStore } from './leases.ts';

const ASK_EVERY_MS = 500;

export interface LeaseHolder {
  name: string;
  holder: string;
}

/** Waits until nobody else has the lease, and renews it while the work runs. Returns what the work resolves to. */
export async function withLease<Result>(
  leases: LeaseStore,
  { name, holder }: LeaseHolder,
  work: () => Promise<Result>,
): Promise<Result> {
  while (!(await leases.hold(name, holder))) await wait(ASK_EVERY_MS);
  // After a renewal that failed, the next one comes before the lease ends.
  const renew = (): void => void leases.hold(name, holder).catch(() => undefined);
  const renewal = setInterval(renew, LEASE_MS / 3);
  try {
    return await work();
  } finally {
    clearInterval(renewal);
    await leases.release(name, holder).catch(() => undefined);
  }
}
