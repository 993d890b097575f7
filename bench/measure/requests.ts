import { setTimeout as wait } from 'node:timers/promises';
import type { Arrivals } from '../load/arrivals.ts';
import { rounded } from './figures.ts';

/** One request to an endpoint. */
export interface Requested {
  messageId: string;
  atMs: number;
}

/** What an endpoint got from one moment on, in this order. */
export interface Watched {
  startedMs: number;
  requests: readonly Requested[];
}

export type RequestWatch = ReturnType<typeof watchRequests>;

/** A backlog of 100,000 takes some minutes. */
const PATIENCE_MS = 900_000;
const CHECK_EVERY_MS = 20;

/** Keeps what endpoints get. `start` begins to watch, as often as it is called. */
export function watchRequests(signal: AbortSignal) {
  const requests: Requested[] = [];
  return {
    requests: requests as readonly Requested[],
    note: ((messageId) => {
      requests.push({ messageId, atMs: performance.now() });
    }) satisfies Arrivals['note'] as Arrivals['note'],
    start() {
      const from = requests.length;
      const startedMs = performance.now();
      return {
        /** Resolves as well when they do not come within 15 minutes. */
        async untilRequested(count: number): Promise<void> {
          const endMs = startedMs + PATIENCE_MS;
          while (requests.length - from < count && performance.now() < endMs) {
            await wait(CHECK_EVERY_MS, undefined, { signal });
          }
        },
        end: (): Watched => ({ startedMs, requests: requests.slice(from) }),
      };
    },
  };
}

/** From the first to the last request. */
export function requestsPerSecond({ requests }: Watched): number {
  const [first, last] = [requests[0]?.atMs ?? 0, requests.at(-1)?.atMs ?? 0];
  return rounded(requests.length / ((last - first) / 1_000));
}

export const firstAfterMs = ({ requests, startedMs }: Watched): number =>
  rounded((requests[0]?.atMs ?? Infinity) - startedMs);
