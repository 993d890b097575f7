import { describe, expect, it } from '@jest/globals';
import {
  type Outcome,
  type Outgoing,
  Pacer,
  RefusedItem,
  sendAll,
  type SendAllOptions,
  type Sent,
} from './send-all.ts';

/** A batch whose request is held until the test settles it. */
interface Held {
  items: readonly number[];
  settle: (error?: Error) => void;
}

const accepted = (items: readonly number[]): Outcome<number>[] =>
  items.map((result) => ({ result }));

/** Starts `sendAll` with numbers as items, and with a `send` that the test answers. */
function startSending(
  items: AsyncIterable<Outgoing<number>> | Iterable<Outgoing<number>>,
  options: Partial<SendAllOptions<number, number>> = {},
) {
  const held: Held[] = [];
  const reported: Sent<number>[] = [];
  const ended = sendAll<number, number>({
    items,
    send: (batch) =>
      new Promise((resolve) => {
        const settle = (error?: Error): void => {
          resolve(error ? batch.map(() => ({ error })) : accepted(batch));
        };
        held.push({ items: batch, settle });
      }),
    finish: (number) => Promise.resolve(number),
    bytesOf: () => 1,
    concurrency: 1,
    pacer: new Pacer(undefined),
    signal: new AbortController().signal,
    onSent: (sent) => reported.push(sent),
    isFatal: (error) => error instanceof Error && error.message === 'fatal',
    stopReading: () => undefined,
    ...options,
  });
  return { held, reported, ended, sizes: () => held.map((batch) => batch.items.length) };
}

const numbersTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1);
const outgoingTo = (count: number): Outgoing<number>[] =>
  numbersTo(count).map((number) => ({ number, item: number }));

/** Lets everything happen that needs no other event. */
async function settled(): Promise<void> {
  for (let n = 0; n < 4; n += 1) await new Promise((resolve) => setImmediate(resolve));
}

describe('sending all', () => {
  it('has one batch under way, of up to 1,000 items and 1 MiB, and reports in order', async () => {
    const { held, reported, ended, sizes } = startSending(outgoingTo(1_203), {
      bytesOf: (number) => (number > 1_200 ? 700_000 : 100),
    });
    for (const size of [1_000, 201, 1, 1]) {
      await settled();
      expect(sizes().at(-1)).toBe(size);
      held.at(-1)?.settle();
    }
    expect(await ended).toEqual({ lastNumber: 1_203, fatal: null });
    expect(held.flatMap(({ items }) => items)).toEqual(numbersTo(1_203));
    expect(reported).toEqual(numbersTo(1_203).map((number) => ({ number, result: number })));
  });

  it('sends an item at once when none is under way, and what comes meanwhile together', async () => {
    const input = new TransformStream<Outgoing<number>, Outgoing<number>>();
    const writer = input.writable.getWriter();
    const { held, ended } = startSending(input.readable);
    await writer.write({ number: 1, item: 1 });
    await settled();
    expect(held).toHaveLength(1);
    for (const number of [2, 3]) await writer.write({ number, item: number });
    await writer.close();
    held[0]?.settle();
    await settled();
    held[1]?.settle();
    await ended;
    expect(held.map(({ items }) => items)).toEqual([[1], [2, 3]]);
  });

  it('puts an item into a batch only when its time has come', async () => {
    const times: (() => void)[] = [];
    class HeldPacer extends Pacer {
      override wait(): Promise<void> {
        return new Promise((resolve) => times.push(resolve));
      }
    }
    const { held, ended } = startSending(outgoingTo(2), { pacer: new HeldPacer(1) });
    await settled();
    expect(held).toEqual([]);
    for (const number of [1, 2]) {
      times.pop()?.();
      await settled();
      expect(held.map(({ items }) => items).at(-1)).toEqual([number]);
      held.at(-1)?.settle();
      await settled();
    }
    await ended;
  });

  it('has more batches at once when it may and they are full', async () => {
    const { held, reported, ended, sizes } = startSending(outgoingTo(2_500), { concurrency: 2 });
    await settled();
    expect(sizes()).toEqual([1_000, 1_000]);
    held[1]?.settle();
    await settled();
    expect(reported).toEqual([]);
    held[0]?.settle();
    await settled();
    held[2]?.settle();
    await ended;
    expect(reported).toEqual(numbersTo(2_500).map((number) => ({ number, result: number })));
  });

  it('reads no further while a batch is under way and the next one is full', async () => {
    let read = 0;
    function* endless(): Generator<Outgoing<number>> {
      for (;;) {
        read += 1;
        yield { number: read, item: read };
      }
    }
    const { held, ended } = startSending(endless());
    await settled();
    expect(read).toBe(2_001);
    held[0]?.settle(new Error('fatal'));
    expect(await ended).toEqual({ lastNumber: 1_000, fatal: new Error('fatal') });
  });

  it('sends no further batch while 128 of the one before are followed to their end', async () => {
    const ends: (() => void)[] = [];
    const { held, ended } = startSending(outgoingTo(1_001), {
      finish: (number) =>
        new Promise((resolve) => {
          ends.push(() => {
            resolve(number);
          });
        }),
    });
    await settled();
    held[0]?.settle();
    await settled();
    expect([ends.length, held.length]).toEqual([128, 1]);
    while (held.length === 1) {
      for (const end of ends.splice(0)) end();
      await settled();
    }
    held[1]?.settle();
    await settled();
    for (const end of ends.splice(0)) end();
    expect(await ended).toEqual({ lastNumber: 1_001, fatal: null });
  });

  it('reports items that failed together at once, and one that cannot be sent in its place', async () => {
    const { held, reported, ended } = startSending([
      { number: 1, item: 1 },
      { number: 2, item: 2 },
      { number: 3, problem: 'no text' },
      { number: 4, item: 4 },
    ]);
    await settled();
    held[0]?.settle(new Error('refused'));
    expect(await ended).toEqual({ lastNumber: 4, fatal: null });
    expect(reported).toEqual([
      { numbers: [1, 2], error: new Error('refused') },
      { numbers: [3], error: new RefusedItem('no text') },
      { numbers: [4], error: new Error('refused') },
    ]);
  });

  it('ends at a failure that all others would have, also while its input stays open', async () => {
    const reading = Promise.withResolvers<never>();
    async function* open(): AsyncGenerator<Outgoing<number>> {
      yield { number: 1, item: 1 };
      await reading.promise;
    }
    const { held, ended } = startSending(open(), {
      stopReading: () => {
        reading.reject(new Error('aborted'));
      },
    });
    await settled();
    held[0]?.settle(new Error('fatal'));
    expect(await ended).toEqual({ lastNumber: 1, fatal: new Error('fatal') });
  });

  it('sends what was read before its source failed', async () => {
    async function* broken(): AsyncGenerator<Outgoing<number>> {
      yield { number: 1, item: 1 };
      await Promise.reject(new Error('cannot read'));
    }
    const { held, reported, ended } = startSending(broken());
    const failure = expect(ended).rejects.toThrow('cannot read');
    await settled();
    held[0]?.settle();
    await failure;
    expect(reported).toEqual([{ number: 1, result: 1 }]);
  });
});

describe('the pace', () => {
  it('has the same interval whatever single starts are late, and no burst after a pause', () => {
    const pacer = new Pacer(10);
    expect([pacer.reserve(0), pacer.reserve(10), pacer.reserve(150)]).toEqual([0, 90, 50]);
    // The source paused for ten seconds: one start is caught up on.
    expect([pacer.reserve(10_200), pacer.reserve(10_200), pacer.reserve(10_200)]).toEqual([
      0, 0, 100,
    ]);
  });
});
