import type { LookupAddress } from 'node:dns';
import {
  refusalOfAddress,
  type EgressPolicy,
  type EgressRefusal,
} from '@posthorn/domain/egress/egress-rules.ts';
import type { Resolve } from './resolve-host.ts';

/** Deliveries may not go to the destination. The message does not contain the address that it resolved to. */
export class EgressBlockedError extends Error {
  readonly code = 'EGRESS_BLOCKED';
  readonly reason: EgressRefusal;
  constructor(reason: EgressRefusal) {
    super('blocked address');
    this.reason = reason;
  }
}

/**
 * Resolves with the addresses that `resolve` found for a host, one at least. Rejects with EgressBlockedError when the policy
 * refuses one of them, and with LookupFailedError. A cached address is checked each time it is used.
 */
export async function checkedAddresses(
  hostname: string,
  policy: EgressPolicy,
  resolve: Resolve,
): Promise<[LookupAddress, ...LookupAddress[]]> {
  const [first, ...others] = await resolve(hostname);
  if (!first || [first, ...others].some(({ address }) => refusalOfAddress(address, policy))) {
    throw new EgressBlockedError('address');
  }
  return [first, ...others];
}
