import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createFifo } from './fifo.ts';

it('does what an array does, whatever is pushed, shifted and popped', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('push'), times: fc.integer({ min: 1, max: 3_000 }) }),
    fc.record({ kind: fc.constant('shift'), times: fc.integer({ min: 1, max: 3_000 }) }),
    fc.record({ kind: fc.constant('pop'), times: fc.integer({ min: 1, max: 3_000 }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const fifo = createFifo<number>();
      const model: number[] = [];
      let pushed = 0;
      for (const { kind, times } of steps) {
        for (let n = 0; n < times; n += 1) {
          if (kind === 'push') {
            fifo.push(pushed);
            model.push(pushed);
            pushed += 1;
          } else if (kind === 'pop') {
            if (fifo.pop() !== model.pop()) return false;
          } else if (fifo.shift() !== model.shift()) return false;
        }
        if (fifo.size() !== model.length || fifo.peek() !== model[0]) return false;
        if (fifo.peekLast() !== model.at(-1)) return false;
      }
      return true;
    }),
    { numRuns: 50 },
  );
});

it('holds no reference to items that were removed', () => {
  const fifo = createFifo<string>();
  expect([fifo.peek(), fifo.shift(), fifo.size()]).toEqual([undefined, undefined, 0]);
  fifo.push('a');
  fifo.push('b');
  expect([fifo.shift(), fifo.peek(), fifo.size()]).toEqual(['a', 'b', 1]);
  expect([fifo.shift(), fifo.shift(), fifo.size()]).toEqual(['b', undefined, 0]);
});
