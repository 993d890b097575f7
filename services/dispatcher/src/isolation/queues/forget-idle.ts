import { isHostIdle, type HostPace } from '../endpoint/host-pace.ts';
import { isSlow } from '../endpoint/when-endpoint-is-slow.ts';
import { isIdle, waitingOf, type QueuedEndpoint, type QueueState } from './queue-state.ts';

/** Beyond this many, an endpoint is forgotten as soon as it is idle, unless it has a hold or a pace. */
export const MAX_IDLE_ENDPOINTS = 10_000;
/** What one endpoint takes in memory. */
export const ENDPOINT_BYTES = 1_024;
/** An idle endpoint is remembered for this long. */
const KEPT_IDLE_MS = 60_000;

export function forgetIdle(state: QueueState): void {
  const nowMs = state.monotonicMs();
  for (const endpoint of state.endpoints.values()) {
    if (isForgettable(endpoint, nowMs)) state.endpoints.delete(endpoint.webhookId);
  }
  if (state.hosts.size > 0) forgetIdleHosts(state, nowMs);
}

/** A host for which attempts wait is kept: otherwise they and the attempts that arrive would have a pace each. */
function forgetIdleHosts({ endpoints, hosts, nowMs: epochMs }: QueueState, nowMs: number): void {
  const awaited = new Set<HostPace>();
  for (const endpoint of endpoints.values()) {
    if (endpoint.host && waitingOf(endpoint) > 0) awaited.add(endpoint.host);
  }
  for (const [key, host] of hosts) {
    if (!awaited.has(host) && isHostIdle(host, nowMs, epochMs())) hosts.delete(key);
  }
}

function isForgettable(endpoint: QueuedEndpoint, nowMs: number): boolean {
  const { holdUntilMs, nextPacedMs, lastEndMs } = endpoint;
  if (!isIdle(endpoint) || isSlow(endpoint, nowMs)) return false;
  return Math.max(holdUntilMs, nextPacedMs, lastEndMs + KEPT_IDLE_MS) <= nowMs;
}

/** Forgets this endpoint at once when there are too many and nothing about it must be kept. */
export function forgetIfTooMany(
  { endpoints, monotonicMs }: QueueState,
  endpoint: QueuedEndpoint,
): void {
  if (endpoints.size <= MAX_IDLE_ENDPOINTS || !isIdle(endpoint)) return;
  if (Math.max(endpoint.holdUntilMs, endpoint.nextPacedMs) > monotonicMs()) return;
  endpoints.delete(endpoint.webhookId);
}
