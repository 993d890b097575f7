import { randomBytes } from 'node:crypto';
import { secretFromBytes } from '@posthorn/domain/request/signature.ts';

/** Standard Webhooks asks for 24 to 64. */
const SECRET_BYTES = 32;

/** A random secret of a webhook, as Standard Webhooks writes it. */
export function newSecret(): string {
  return secretFromBytes(randomBytes(SECRET_BYTES));
}
