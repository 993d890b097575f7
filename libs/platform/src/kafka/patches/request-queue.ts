import { createRequire } from 'node:module';

/** The part of kafkajs's request queue, one for each connection, that is used here. */
interface RequestQueue {
  pending: unknown[];
  /** Sets the timer that checks `pending` again. */
  scheduleCheckPendingRequests: () => void;
  inflight: Map<number, InflightRequest>;
  enforceRequestTimeout: boolean;
  isConnected: () => boolean;
  scheduleRequestTimeoutCheck: () => void;
  /** Clears the timers. */
  destroy: () => void;
  requestTimeoutIntervalId: NodeJS.Timeout;
}

interface InflightRequest {
  sentAt: number;
  requestTimeout: number;
  timeoutRequest: () => void;
}

const TIMEOUTS_EVERY_MS = 1_000;

/**
 * In kafkajs 2.2.4 each connection checks its queue every millisecond for as long as it lives, whether
 * or not a request waits (tulios/kafkajs#1704). In each idle service that was about 1,000 wake-ups a
 * second and 2 % of a core. After the patch it checks only while a request waits.
 *
 * It also looks every 100 ms for requests that got no response in time, which are ten wakes a second for each of up to 12
 * connections of a service. After the patch once a second: the shortest time-out is ten seconds.
 */
export function patchRequestQueue(): void {
  const require = createRequire(import.meta.url);
  const { prototype } = require('kafkajs/src/network/requestQueue/index.js') as {
    prototype: RequestQueue;
  };
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue): void {
    if (this.pending.length > 0) schedule.call(this);
  };
  prototype.scheduleRequestTimeoutCheck = function (this: RequestQueue): void {
    if (!this.enforceRequestTimeout) return;
    this.destroy();
    this.requestTimeoutIntervalId = setInterval(() => {
      const nowMs = Date.now();
      for (const request of this.inflight.values()) {
        if (nowMs - request.sentAt > request.requestTimeout) request.timeoutRequest();
      }
      if (!this.isConnected()) this.destroy();
    }, TIMEOUTS_EVERY_MS);
  };
}
