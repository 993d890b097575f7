import { beforeEach, describe, expect, it } from '@jest/globals';
import { createRecordMemory, type RecordMemory } from './record-memory.ts';

/** What we keep about a record, whatever it carries. */
const RECORD = 2_048;
const BUDGET = 100 * RECORD;

let memory: RecordMemory;

beforeEach(() => {
  memory = createRecordMemory(BUDGET);
});

/** So many records without payloads. */
function hold(records: number): (() => void)[] {
  return Array.from({ length: records }, () => memory.hold(0).release);
}

describe('records that are handled', () => {
  it('count with what they carry and what is kept about them, until they are released', () => {
    const { release } = memory.hold(10_000);
    expect(memory.usedBytes()).toBe(10_000 + RECORD);
    release();
    expect(memory.usedBytes()).toBe(0);
  });

  it('count less when their payload is dropped, and more with a response', () => {
    const { setTo, release } = memory.hold(10_000);
    setTo(100);
    expect(memory.usedBytes()).toBe(100 + RECORD);
    setTo(5_000);
    expect(memory.usedBytes()).toBe(5_000 + RECORD);
    release();
    expect(memory.usedBytes()).toBe(0);
  });

  it('are released once, however often release is called', () => {
    const [release] = hold(2);
    release?.();
    release?.();
    expect(memory.usedBytes()).toBe(RECORD);
  });

  it('are not read when the budget is exhausted, and again when a quarter of it is free', () => {
    const releases = hold(99);
    expect(memory.hasRoom()).toBe(true);
    releases.push(...hold(1));
    expect(memory.hasRoom()).toBe(false);
    for (const release of releases.splice(0, 24)) release();
    expect(memory.hasRoom()).toBe(false);
    releases[0]?.();
    expect(memory.hasRoom()).toBe(true);
  });
});
