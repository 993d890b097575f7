import { describe, expect, test } from '@jest/globals';
import { StoreUnavailableError } from '../../service/errors.ts';
import type { LayoutDocument } from '../documents.ts';
import { CERTAIN_FOR_MS, followLayout } from './layout.ts';

const BEGIN = Date.UTC(2026, 10, 24);

async function follow(stored: Partial<LayoutDocument> | null) {
  const state = { stored, nowMs: BEGIN - 600_000, monotonicMs: 5 };
  const documents = { findOne: () => Promise.resolve(state.stored) };
  const followed = await followLayout({ collection: () => documents } as never, {
    nowMs: () => state.nowMs,
    monotonicMs: () => state.monotonicMs,
  });
  followed.stop();
  return { state, ...followed };
}

describe('the followed layout', () => {
  test('is not known before create-indexes has stored it', async () => {
    const { layout, read, state } = await follow(null);
    expect(layout).toThrow(StoreUnavailableError);
    state.stored = { retentionDays: 2 };
    await read();
    expect(layout()).toMatchObject({ beginMs: Infinity, retentionMs: 172_800_000 });
  });

  test.each(['nowMs', 'monotonicMs'] as const)(
    'is not certain when it could not be read for minutes by %s, because days may have begun',
    async (clock) => {
      const { layout, read, state } = await follow({ retentionDays: 30 });
      state[clock] += CERTAIN_FOR_MS;
      expect(layout().beginMs).toBe(Infinity);
      state[clock] += 1;
      expect(layout).toThrow(StoreUnavailableError);
      state.stored = { retentionDays: 30, beginAt: new Date(BEGIN) };
      await read();
      expect(layout().beginMs).toBe(BEGIN);
    },
  );

  test('is read again at once when it is used after a jump of the clock', async () => {
    const { layout, state } = await follow({ retentionDays: 30 });
    state.nowMs += 2 * CERTAIN_FOR_MS;
    expect(layout).toThrow(StoreUnavailableError);
    await new Promise(setImmediate);
    expect(layout().beginMs).toBe(Infinity);
  });

  test('is certain for good once days have begun', async () => {
    const { layout, state } = await follow({ retentionDays: 30, beginAt: new Date(BEGIN) });
    state.nowMs += 100 * CERTAIN_FOR_MS;
    expect(layout().beginMs).toBe(BEGIN);
  });
});
