import { describe, expect, it } from '@jest/globals';
import { isWorthCollecting } from './collect-when-idle.ts';

const MIB = 1_048_576;

describe('garbage is collected while the process is idle', () => {
  const rest = {
    busyShare: 0.02,
    residentBytes: 200 * MIB,
    keptBytes: 200 * MIB,
    sinceGrownMs: null,
  };

  it('when it was never collected', () => {
    expect(isWorthCollecting({ ...rest, keptBytes: null })).toBe(true);
  });

  it('when the process has grown since the last collection, and not otherwise', () => {
    expect(isWorthCollecting({ ...rest, residentBytes: 221 * MIB })).toBe(true);
    expect(isWorthCollecting({ ...rest, residentBytes: 219 * MIB })).toBe(false);
  });

  it('a second time when the entries of the caches have expired', () => {
    expect(isWorthCollecting({ ...rest, sinceGrownMs: 80_000 })).toBe(false);
    expect(isWorthCollecting({ ...rest, sinceGrownMs: 90_000 })).toBe(true);
  });

  it('never while the process is busy, because work would wait for it', () => {
    const busy = { ...rest, busyShare: 0.1, residentBytes: 600 * MIB, sinceGrownMs: 90_000 };
    expect(isWorthCollecting(busy)).toBe(false);
  });
});
