import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  count,
  createQueueBench,
  EPOCH_MS,
  type QueueBench,
} from '../../../../../test/support/isolation/queue-bench.ts';
import type { CircuitView } from '../gate/views.ts';

const OPEN: CircuitView = { kind: 'open', deferForMs: 30_000 };

let bench: QueueBench;

beforeEach(() => {
  bench = createQueueBench();
});

const probing = (sinceMs: number): CircuitView => ({
  kind: 'probing',
  sinceMs,
  deferForMs: 30_000,
});

describe('an open circuit', () => {
  it('defers whoever comes for as long as it says', async () => {
    bench.circuits.set('a', OPEN);
    const [one] = await bench.enter('a', 'first', 1);
    const turnAtMs = EPOCH_MS + bench.time.nowMs() + 30_000;
    expect(one?.admission).toEqual({ kind: 'defer', because: 'circuit', turnAtMs });
  });

  it('defers what came over the slow lane as well, and nothing of another endpoint', async () => {
    bench.circuits.set('a', OPEN);
    expect(count(await bench.enter('a', 'slow', 3)).deferred).toBe(3);
    expect(count(await bench.enter('b', 'first', 3)).turns).toBe(3);
  });

  it('spreads a large backlog, so that it does not come back at once', async () => {
    bench.circuits.set('a', OPEN);
    const nowMs = EPOCH_MS + bench.time.nowMs();
    const all = await bench.enter('a', 'first', 4_000);
    const inMs = all.map(({ admission }) =>
      admission?.kind === 'defer' ? admission.turnAtMs - nowMs : 0,
    );
    expect([inMs[0], inMs[2_999], inMs[3_999]]).toEqual([30_000, 30_000, 40_000]);
  });

  it('sends those away that waited for a place when it opened', async () => {
    const all = await bench.enter('a', 'first', 20);
    bench.circuits.set('a', OPEN);
    await bench.finish(all.slice(0, 1), { outcome: 'http_5xx', statusCode: 500 });
    expect(count(all)).toMatchObject({ turns: 16, deferred: 4 });
  });

  it('lengthens no turn that lies far ahead', async () => {
    bench.circuits.set('a', OPEN);
    const turnAtMs = EPOCH_MS + bench.time.nowMs() + 600_000;
    const [one] = await bench.enter('a', 'first', 1, { turnAtMs });
    expect(one?.admission).toEqual({ kind: 'defer', because: 'turn', turnAtMs });
  });
});

describe('an attempt that comes while another one probes the endpoint', () => {
  it('waits meanwhile, and is made when the probe has closed the circuit', async () => {
    const probe = await bench.enter('a', 'first', 1);
    bench.circuits.set('a', probing(0));
    const all = await bench.enter('a', 'first', 3);
    expect(count(all).waiting).toBe(3);
    bench.circuits.delete('a');
    await bench.finish(probe);
    expect(count(all).turns).toBe(3);
  });

  it('is deferred when the probe has failed', async () => {
    const probe = await bench.enter('a', 'first', 1);
    bench.circuits.set('a', probing(0));
    const all = await bench.enter('a', 'first', 3);
    bench.circuits.set('a', OPEN);
    await bench.finish(probe, { outcome: 'timeout', statusCode: null });
    expect(count(all).deferred).toBe(3);
  });

  it('is deferred when the probe takes longer than half a second', async () => {
    bench.circuits.set('a', probing(100));
    const all = await bench.enter('a', 'first', 3);
    await bench.pass(399);
    expect(count(all).waiting).toBe(3);
    bench.circuits.set('a', probing(500));
    await bench.pass(1);
    expect(count(all).deferred).toBe(3);
  });

  it('does not even wait when the probe has taken that long already', async () => {
    bench.circuits.set('a', probing(500));
    expect(count(await bench.enter('a', 'first', 1)).deferred).toBe(1);
  });

  it('is the next probe when the one before was not made after all', async () => {
    bench = createQueueBench({ begins: false });
    const probe = await bench.enter('a', 'first', 1);
    bench.circuits.set('a', probing(0));
    const next = await bench.enter('a', 'first', 1);
    bench.circuits.delete('a');
    await bench.finish(probe, null);
    expect(count(next).turns).toBe(1);
  });
});
