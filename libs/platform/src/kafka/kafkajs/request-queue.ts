import { createRequire } from 'node:module';

/** What of kafkajs's queue of requests, one for each connection, is used here. */
interface RequestQueue {
  pending: unknown[];
  /** Sets the timer that looks at `pending` again. */
  scheduleCheckPendingRequests: () => void;
}

let isMended = false;

/**
 * In kafkajs 2.2.4 each connection looks at its queue every millisecond for as long as it lives,
 * whether or not a request waits (tulios/kafkajs#1704). In each idle service that was about 1,000
 * wake-ups a second and 2 % of a core. Here it looks only while a request waits.
 */
export function mendRequestQueue(): void {
  if (isMended) return;
  isMended = true;
  const prototype = requestQueuePrototype();
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue): void {
    if (this.pending.length > 0) schedule.call(this);
  };
}

function requestQueuePrototype(): RequestQueue {
  const require = createRequire(import.meta.url);
  const queue = require('kafkajs/src/network/requestQueue/index.js') as { prototype: RequestQueue };
  return queue.prototype;
}
