import { createRequire } from 'node:module';

/** The part of kafkajs's request queue, one for each connection, that is used here. */
interface RequestQueue {
  pending: unknown[];
  /** Sets the timer that checks `pending` again. */
  scheduleCheckPendingRequests: () => void;
}

let isPatched = false;

/**
 * In kafkajs 2.2.4 each connection checks its queue every millisecond for as long as it lives, whether
 * or not a request waits (tulios/kafkajs#1704). In each idle service that was about 1,000 wake-ups a
 * second and 2 % of a core. After the patch it checks only while a request waits.
 */
export function patchRequestQueue(): void {
  if (isPatched) return;
  isPatched = true;
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
