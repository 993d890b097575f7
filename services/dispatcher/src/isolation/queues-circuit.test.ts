import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  count,
  createQueueHarness,
  EPOCH_MS,
  type QueueHarness,
} from '../../../../test/support/isolation/queue-harness.ts';
import type { CircuitView } from './gate.ts';

const OPEN: CircuitView = { kind: 'open', deferForMs: 30_000 };

let harness: QueueHarness;

beforeEach(() => {
  harness = createQueueHarness();
});

const probing = (sinceMs: number): CircuitView => ({
  kind: 'probing',
  sinceMs,
  deferForMs: 30_000,
});

describe('an open circuit', () => {
  it('defers every attempt for as long as it says', async () => {
    harness.circuits.set('a', OPEN);
    const [one] = await harness.enter('a', 'first', 1);
    const reservedAtMs = EPOCH_MS + harness.time.nowMs() + 30_000;
    expect(one?.admission).toEqual({ kind: 'defer', because: 'circuit', reservedAtMs });
  });

  it('defers attempts from the slow lane as well, and none of another endpoint', async () => {
    harness.circuits.set('a', OPEN);
    expect(count(await harness.enter('a', 'slow', 3)).deferred).toBe(3);
    expect(count(await harness.enter('b', 'first', 3)).started).toBe(3);
  });

  it('spreads a large backlog so that it does not come back at once', async () => {
    harness.circuits.set('a', OPEN);
    const nowMs = EPOCH_MS + harness.time.nowMs();
    const all = await harness.enter('a', 'first', 4_000);
    const inMs = all.map(({ admission }) =>
      admission?.kind === 'defer' ? admission.reservedAtMs - nowMs : 0,
    );
    expect([inMs[0], inMs[2_999], inMs[3_999]]).toEqual([30_000, 30_000, 40_000]);
  });

  it('evicts attempts that waited for a slot when it opened', async () => {
    const all = await harness.enter('a', 'first', 20);
    harness.circuits.set('a', OPEN);
    await harness.finish(all.slice(0, 1), { outcome: 'http_5xx', statusCode: 500 });
    expect(count(all)).toMatchObject({ started: 16, deferred: 4 });
  });

  it('does not change a reservation that is far ahead', async () => {
    harness.circuits.set('a', OPEN);
    const reservedAtMs = EPOCH_MS + harness.time.nowMs() + 600_000;
    const [one] = await harness.enter('a', 'first', 1, { reservedAtMs });
    expect(one?.admission).toEqual({ kind: 'defer', because: 'turn', reservedAtMs });
  });
});

describe('an attempt that comes while a probe is under way', () => {
  it('waits, and is made when the probe has closed the circuit', async () => {
    const probe = await harness.enter('a', 'first', 1);
    harness.circuits.set('a', probing(0));
    const all = await harness.enter('a', 'first', 3);
    expect(count(all).waiting).toBe(3);
    harness.circuits.delete('a');
    await harness.finish(probe);
    expect(count(all).started).toBe(3);
  });

  it('is deferred when the probe has failed', async () => {
    const probe = await harness.enter('a', 'first', 1);
    harness.circuits.set('a', probing(0));
    const all = await harness.enter('a', 'first', 3);
    harness.circuits.set('a', OPEN);
    await harness.finish(probe, { outcome: 'timeout', statusCode: null });
    expect(count(all).deferred).toBe(3);
  });

  it('is deferred when the probe takes longer than half a second', async () => {
    harness.circuits.set('a', probing(100));
    const all = await harness.enter('a', 'first', 3);
    await harness.pass(399);
    expect(count(all).waiting).toBe(3);
    harness.circuits.set('a', probing(500));
    await harness.pass(1);
    expect(count(all).deferred).toBe(3);
  });

  it('does not wait when the probe has already taken half a second', async () => {
    harness.circuits.set('a', probing(500));
    expect(count(await harness.enter('a', 'first', 1)).deferred).toBe(1);
  });

  it('becomes the next probe when the previous one was not made after all', async () => {
    harness = createQueueHarness({ begins: false });
    const probe = await harness.enter('a', 'first', 1);
    harness.circuits.set('a', probing(0));
    const next = await harness.enter('a', 'first', 1);
    harness.circuits.delete('a');
    await harness.finish(probe, null);
    expect(count(next).started).toBe(1);
  });
});
