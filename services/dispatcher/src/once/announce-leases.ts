import {
  hasLapsed,
  isAbandoned,
  LASTS_MS,
  LEASE_MS,
  RENEWED_AFTER_MS,
  type LeaseState,
} from './lease-state.ts';

/** Withdraws the released leases, and announces those that last. */
export function announceDue(state: LeaseState): void {
  const { unannounced, announced } = state;
  withdrawReleased(state);
  const nowMs = state.monotonicMs();
  announce(state, [...takeDue(unannounced, nowMs), ...takeDue(announced, nowMs)]);
}

/** Announces those that were not yet. */
export function announceAll(state: LeaseState): void {
  announce(state, takeDue(state.unannounced, Infinity));
}

function announce(state: LeaseState, ids: readonly string[]): void {
  const { running, leases, announced } = state;
  const nowMs = state.monotonicMs();
  const alive: string[] = [];
  for (const id of ids) {
    const lease = leases.get(id);
    if (!lease || hasLapsed(state, lease)) continue;
    lease.isGivenUp = isAbandoned(state, lease);
    if (lease.isGivenUp) continue;
    lease.lapsesAtMs = nowMs + LASTS_MS;
    announced.set(id, nowMs + RENEWED_AFTER_MS);
    alive.push(id);
  }
  if (alive.length > 0) running.announce(alive, LEASE_MS);
}

/**
 * The announcement of an attempt whose lease was taken again meanwhile stays. One that is being claimed
 * again waits for the answer: Redis grants a process what it has announced itself, and the withdrawal
 * would end that.
 */
function withdrawReleased({ running, announced, claims, released }: LeaseState): void {
  const ended = released.splice(0).filter((id) => !announced.has(id));
  const isClaimed = (id: string): boolean => claims.has(id);
  released.push(...ended.filter(isClaimed));
  const over = ended.filter((id) => !isClaimed(id));
  if (over.length > 0) running.withdraw(over);
}

/** Removes the ids whose time has come, and returns them. */
function takeDue(times: Map<string, number>, nowMs: number): string[] {
  const due: string[] = [];
  for (const [id, atMs] of times) {
    if (atMs > nowMs) break;
    due.push(id);
  }
  for (const id of due) times.delete(id);
  return due;
}
