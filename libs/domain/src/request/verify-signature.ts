import { timingSafeEqual } from 'node:crypto';
import { standardKey, standardSignature, type SignedContent } from './signature.ts';

/**
 * Returns whether one of the signatures in a `webhook-signature` header was made with this secret of a
 * webhook (Standard Webhooks 1.0). Does not judge the age of the timestamp.
 */
export function isSignedWith(secret: string, header: string, signed: SignedContent): boolean {
  const expected = Buffer.from(standardSignature(standardKey(secret), signed));
  return header.split(' ').some((entry) => {
    const given = Buffer.from(entry);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}
