import { describe, expect, it } from '@jest/globals';
import { isWorthCollecting } from './collect-at-rest.ts';

const MIB = 1_048_576;

describe('garbage is collected at rest', () => {
  it('when nothing was collected before', () => {
    const rest = { busyShare: 0.02, residentBytes: 200 * MIB, keptBytes: null };
    expect(isWorthCollecting(rest)).toBe(true);
  });

  it('when the process has grown since, and not again and again when it has not', () => {
    const rest = { busyShare: 0.02, keptBytes: 200 * MIB };
    expect(isWorthCollecting({ ...rest, residentBytes: 221 * MIB })).toBe(true);
    expect(isWorthCollecting({ ...rest, residentBytes: 219 * MIB })).toBe(false);
  });

  it('never while there is work, which would wait for it', () => {
    const rest = { busyShare: 0.1, residentBytes: 600 * MIB, keptBytes: 200 * MIB };
    expect(isWorthCollecting(rest)).toBe(false);
  });
});
