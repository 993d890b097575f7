import { describe, expect, it } from '@jest/globals';
import { createOriginSlots } from './origin-slots.ts';

/** Work that is under way until it is told to end. */
function openWork() {
  let begun = 0;
  const ends: (() => void)[] = [];
  return {
    begun: () => begun,
    endNext: () => ends.shift()?.(),
    work: () => {
      begun += 1;
      return new Promise<void>((resolve) => ends.push(resolve));
    },
  };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('the slots of an origin', () => {
  it('let no more run at once than there are, and the next in when one ends', async () => {
    const slots = createOriginSlots(2);
    const { begun, endNext, work } = openWork();
    const all = [1, 2, 3].map(() => slots.within('a', work));
    await settled();
    expect(begun()).toBe(2);
    endNext();
    await settled();
    expect(begun()).toBe(3);
    endNext();
    endNext();
    await Promise.all(all);
  });

  it('are counted for each origin alone', async () => {
    const slots = createOriginSlots(1);
    const { begun, endNext, work } = openWork();
    const all = ['a', 'b', 'c'].map((origin) => slots.within(origin, work));
    await settled();
    expect(begun()).toBe(3);
    [1, 2, 3].forEach(endNext);
    await Promise.all(all);
  });

  it('become free again when the work fails', async () => {
    const slots = createOriginSlots(1);
    await expect(slots.within('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    await expect(slots.within('a', () => Promise.resolve('yes'))).resolves.toBe('yes');
  });
});
