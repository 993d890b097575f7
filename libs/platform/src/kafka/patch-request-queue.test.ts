import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createRequire } from 'node:module';
import { patchRequestQueue } from './connect.ts';

interface Queue {
  pending: unknown[];
  throttledUntil: number;
  throttleCheckTimeoutId: NodeJS.Timeout | null | undefined;
  checkPendingRequests: () => void;
  destroy: () => void;
}

const logger = { debug: () => undefined };

/** The class that kafkajs itself uses. */
function createQueue(): Queue {
  const require = createRequire(import.meta.url);
  const RequestQueue = require('kafkajs/src/network/requestQueue/index.js') as new (
    options: object,
  ) => Queue;
  return new RequestQueue({
    instrumentationEmitter: null,
    maxInFlightRequests: null,
    requestTimeout: 1_000,
    enforceRequestTimeout: false,
    clientId: 'test',
    broker: 'test:9092',
    logger,
  });
}

describe('the request queue of kafkajs', () => {
  let queue: Queue;

  beforeEach(() => {
    patchRequestQueue();
    queue = createQueue();
  });
  afterEach(() => {
    queue.destroy();
  });

  it('sets no timer while no request waits', () => {
    queue.checkPendingRequests();
    expect(queue.throttleCheckTimeoutId ?? null).toBeNull();
  });

  it('checks again while a request waits for the end of a throttle', () => {
    queue.throttledUntil = Date.now() + 60_000;
    queue.pending.push({});
    queue.checkPendingRequests();
    expect(queue.throttleCheckTimeoutId).toBeTruthy();
  });
});
