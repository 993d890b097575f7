import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  advanceHostPace,
  createHostPace,
  type HostPace,
  hostSpacingMs,
  isHostIdle,
  type PacedByHost,
  reserveHostStart,
  untilHostAllowsMs,
} from './host-pace.ts';

const NOW_MS = 100_000;

let host: HostPace;
let one: PacedByHost;
let other: PacedByHost;

beforeEach(() => {
  host = createHostPace(4);
  one = { host, hostStartMs: null };
  other = { host, hostStartMs: null };
});

describe('the limit of attempts to one host [security]', () => {
  it('does not exist for an endpoint without one', () => {
    const free: PacedByHost = { host: null, hostStartMs: null };
    reserveHostStart(free, NOW_MS);
    advanceHostPace(free, NOW_MS);
    expect(untilHostAllowsMs(free, NOW_MS)).toBe(0);
    expect(hostSpacingMs(free, NOW_MS)).toBe(0);
  });

  it('spaces the attempts of all its endpoints evenly', () => {
    expect(untilHostAllowsMs(one, NOW_MS)).toBe(0);
    advanceHostPace(one, NOW_MS);
    expect(untilHostAllowsMs(one, NOW_MS)).toBe(250);
    expect(untilHostAllowsMs(other, NOW_MS + 100)).toBe(150);
    advanceHostPace(other, NOW_MS + 250);
    expect(untilHostAllowsMs(one, NOW_MS + 250)).toBe(250);
  });

  it('of more than ten a second is used up by an event loop that starts some every 50 ms', () => {
    host = createHostPace(1_500);
    one = { host, hostStartMs: null };
    let started = 0;
    for (let nowMs = NOW_MS; nowMs <= NOW_MS + 10_000; nowMs += 50) {
      while (untilHostAllowsMs(one, nowMs) === 0) {
        advanceHostPace(one, nowMs);
        started += 1;
      }
    }
    expect(started / 10).toBeGreaterThanOrEqual(1_500);
    expect(started / 10).toBeLessThan(1_520);
  });

  it('does not let idle time accumulate', () => {
    advanceHostPace(one, NOW_MS);
    advanceHostPace(one, NOW_MS + 60_000);
    expect(untilHostAllowsMs(one, NOW_MS + 60_000)).toBe(250);
  });

  it('gives each waiting endpoint a start of its own, once', () => {
    advanceHostPace(one, NOW_MS);
    reserveHostStart(one, NOW_MS);
    reserveHostStart(other, NOW_MS);
    reserveHostStart(one, NOW_MS);
    expect(untilHostAllowsMs(one, NOW_MS)).toBe(250);
    expect(untilHostAllowsMs(other, NOW_MS)).toBe(500);
    expect(hostSpacingMs(one, NOW_MS)).toBe(750);
    advanceHostPace(one, NOW_MS + 250);
    expect(untilHostAllowsMs(one, NOW_MS + 250)).toBe(500);
  });

  it('takes back a start that was not used within a second', () => {
    reserveHostStart(one, NOW_MS);
    advanceHostPace(other, NOW_MS + 1_001);
    expect(untilHostAllowsMs(one, NOW_MS + 1_001)).toBe(250);
  });

  it('is forgotten when no start is taken and no reservation is booked', () => {
    advanceHostPace(one, NOW_MS);
    host.bookedUntilMs = 5_250;
    expect(isHostIdle(host, NOW_MS + 1_000, 6_000)).toBe(false);
    expect(isHostIdle(host, NOW_MS + 1_251, 5_249)).toBe(false);
    expect(isHostIdle(host, NOW_MS + 1_251, 5_251)).toBe(true);
  });
});
