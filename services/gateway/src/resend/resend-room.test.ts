import { expect, test } from '@jest/globals';
import { createResendRoom } from './resend-room.ts';

test('pages get smaller as the memory fills up, and never smaller than 20', () => {
  const room = createResendRoom(800 * 2_000);
  const sizes = Array.from({ length: 10 }, () => {
    const size = room.pageSize();
    room.hold(size);
    return size;
  });
  expect(sizes).toEqual([500, 500, 500, 250, 125, 62, 31, 20, 20, 20]);
});

test('memory that is given back is there for the next page', () => {
  const room = createResendRoom(800 * 100);
  const giveBack = room.hold(100);
  expect([room.pageSize(), room.usedBytes()]).toEqual([20, 80_000]);
  giveBack();
  expect([room.pageSize(), room.usedBytes()]).toEqual([50, 0]);
});
