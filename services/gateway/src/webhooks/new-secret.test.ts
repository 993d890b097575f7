import { expect, test } from '@jest/globals';
import { newSecret } from './new-secret.ts';

test('a new secret is 32 random bytes in the format of Standard Webhooks', () => {
  const made = Array.from({ length: 100 }, newSecret);
  for (const secret of made) expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(new Set(made).size).toBe(100);
});
