import { randomBytes } from 'node:crypto';
import { secretFromBytes } from '@posthorn/domain/request/signature.ts';

/** Standard Webhooks requires 24 to 64. */
const SECRET_BYTES = 32;

/** Returns a random secret in the format of Standard Webhooks. */
export function newSecret(): string {
  return secretFromBytes(randomBytes(SECRET_BYTES));
}
