import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createRequire } from 'node:module';
import { patchKafkajs } from './patch-kafkajs.ts';

const require = createRequire(import.meta.url);

interface Queue {
  pending: unknown[];
  throttledUntil: number;
  throttleCheckTimeoutId: NodeJS.Timeout | null | undefined;
  checkPendingRequests: () => void;
  destroy: () => void;
}

/** The class that kafkajs itself uses. */
function createQueue(): Queue {
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
    logger: { debug: () => undefined },
  });
}

describe('the request queue of kafkajs', () => {
  let queue: Queue;

  beforeEach(() => {
    patchKafkajs();
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
