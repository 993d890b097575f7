import { expect, test } from '@jest/globals';
import { leaveGroupRequest } from './kafka-native.ts';

test('a LeaveGroup request consists of size, header, group id and member id', () => {
  const request = leaveGroupRequest('group', 'member-1');
  expect(request.readInt32BE(0)).toBe(request.length - 4);
  expect([request.readInt16BE(4), request.readInt16BE(6)]).toEqual([13, 0]);
  expect(request.subarray(12).toString('latin1')).toBe(
    '\0\x14posthorn-local-stack\0\x05group\0\x08member-1',
  );
});
