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

/** Renews the lease. Returns false when another holder has it: the work must stop then. */
export type RenewLease = () => Promise<boolean>;

/**
 * Runs the work when nobody else has the lease, and does nothing otherwise. The work renews the lease itself,
 * so that it learns when it has lost it: each of its steps must end within LEASE_MS. The lease ends with the
 * work, also when that throws.
 */
export async function ifLeaseIsFree(
  leases: LeaseStore,
  { name, holder }: LeaseHolder,
  work: (renew: RenewLease) => Promise<void>,
): Promise<void> {
  const renew: RenewLease = () => leases.hold(name, holder);
  if (!(await renew())) return;
  try {
    await work(renew);
  } finally {
    await leases.release(name, holder).catch(() => undefined);
  }
}
