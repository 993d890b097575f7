import { describe, expect, test } from '@jest/globals';
import { messageStatus } from './message.ts';

describe('the status of a message', () => {
  test('is that of its least finished delivery', () => {
    expect(messageStatus(['delivered', 'cancelled', 'exhausted', 'pending'])).toBe('pending');
    expect(messageStatus(['delivered', 'cancelled', 'exhausted'])).toBe('exhausted');
    expect(messageStatus(['cancelled', 'delivered'])).toBe('cancelled');
    expect(messageStatus(['delivered', 'delivered'])).toBe('delivered');
  });

  test('is delivered when it has no targets', () => {
    expect(messageStatus([])).toBe('delivered');
  });
});
