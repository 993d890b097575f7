import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createRequire } from 'node:module';
import { patchKafkajs } from './patch-kafkajs.ts';

const require = createRequire(import.meta.url);

interface Queue {
  pending: unknown[];
  throttledUntil: number;
  throttleCheckTimeoutId: NodeJS.Timeout | null | undefined;
  checkPendingRequests: () => void;
  inflight: Map<number, { sentAt: number; requestTimeout: number; timeoutRequest: () => void }>;
  scheduleRequestTimeoutCheck: () => void;
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
    enforceRequestTimeout: true,
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

  it('ends a request that got no response in time, within a second', () => {
    jest.useFakeTimers();
    try {
      const ended: number[] = [];
      const startedMs = Date.now();
      queue.scheduleRequestTimeoutCheck();
      queue.inflight.set(1, {
        sentAt: startedMs,
        requestTimeout: 1_500,
        timeoutRequest: () => ended.push(Date.now() - startedMs),
      });
      jest.advanceTimersByTime(2_000);
      expect(ended).toEqual([2_000]);
    } finally {
      jest.useRealTimers();
    }
  });

  it('checks again while a request waits for the end of a throttle', () => {
    queue.throttledUntil = Date.now() + 60_000;
    queue.pending.push({});
    queue.checkPendingRequests();
    expect(queue.throttleCheckTimeoutId).toBeTruthy();
  });
});
