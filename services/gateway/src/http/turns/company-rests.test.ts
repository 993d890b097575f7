import { describe, expect, test } from '@jest/globals';
import { createCompanyRests } from './company-rests.ts';

const BUSY = 0.9;

function setUp() {
  let nowMs = 10_000;
  const rests = createCompanyRests(() => nowMs);
  const pass = (ms: number): void => void (nowMs += ms);
  /** So many tenths of a second in which the process was so busy. */
  const ticks = (count: number, busyPart: number): void => {
    for (let n = 0; n < count; n += 1) {
      pass(100);
      rests.tick(busyPart);
    }
  };
  /** Until companies rest 16 times as long as they worked. */
  const beBusy = (companies: readonly string[]): void => {
    for (let n = 0; n < 20; n += 1) {
      for (const companyId of companies) rests.note(companyId);
      ticks(1, BUSY);
    }
  };
  return { rests, pass, ticks, beBusy };
}

describe('a company', () => {
  test('that is alone never rests, however busy the process is', () => {
    const { rests, beBusy } = setUp();
    beBusy(['comp_a']);
    rests.charge('comp_a', 100);
    expect(rests.restMs('comp_a')).toBe(0);
  });

  test('that does all the work of a busy process rests when another one is present', () => {
    const { rests, pass, beBusy } = setUp();
    beBusy(['comp_a', 'comp_b']);
    rests.charge('comp_a', 10);
    expect([rests.restMs('comp_a'), rests.restMs('comp_b')]).toEqual([80, 0]);
    pass(30);
    expect(rests.restMs('comp_a')).toBe(50);
    pass(50);
    expect(rests.restMs('comp_a')).toBe(0);
  });

  test('does not rest while the process has time', () => {
    const { rests, ticks } = setUp();
    for (const companyId of ['comp_a', 'comp_b']) rests.note(companyId);
    ticks(1, 0.4);
    rests.charge('comp_a', 100);
    expect(rests.restMs('comp_a')).toBe(0);
  });

  test('does not rest when all work alike', () => {
    const { rests, beBusy } = setUp();
    beBusy(['comp_a', 'comp_b']);
    rests.charge('comp_b', 10);
    rests.charge('comp_a', 10);
    expect([rests.restMs('comp_a'), rests.restMs('comp_b')]).toEqual([0, 80]);
    rests.charge('comp_b', 1);
    expect(rests.restMs('comp_b')).toBeLessThan(82);
  });

  test('rests no more once the process is calm', () => {
    const { rests, beBusy, ticks } = setUp();
    beBusy(['comp_a', 'comp_b']);
    rests.charge('comp_a', 10_000);
    expect(rests.restMs('comp_a')).toBe(2_000);
    ticks(26, 0.1);
    rests.charge('comp_a', 10);
    expect(rests.restMs('comp_a')).toBe(0);
  });

  test('is forgotten a second after its last request, so that the other one is alone', () => {
    const { rests, beBusy } = setUp();
    beBusy(['comp_a', 'comp_b']);
    beBusy(['comp_a']);
    rests.charge('comp_a', 10);
    expect(rests.restMs('comp_a')).toBe(0);
  });

  test('pauses after a part of earlier work for as long as that took, when others are present', () => {
    const { rests } = setUp();
    rests.note('comp_a');
    expect(rests.pauseMs('comp_a', 4)).toBe(0);
    rests.note('comp_b');
    expect([rests.pauseMs('comp_a', 4), rests.pauseMs('comp_gone', 4)]).toEqual([4, 4]);
  });

  test('pauses four times as long in a busy process', () => {
    const { rests, beBusy } = setUp();
    beBusy(['comp_a', 'comp_b']);
    expect(rests.pauseMs('comp_a', 4)).toBe(16);
  });

  test('pays one millisecond for 32 KiB', () => {
    const { rests, beBusy } = setUp();
    beBusy(['comp_a', 'comp_b']);
    rests.chargeBytes('comp_a', 65_536);
    expect(rests.restMs('comp_a')).toBe(16);
  });
});
