import { verifyAsync } from '@noble/ed25519';
import type { PublicJwk } from '@posthorn/domain/request/signature.ts';
import type { Received } from './receiver.ts';

export interface JwkSet {
  keys: PublicJwk[];
}

/**
 * Verifies a delivery as a receiver does that has the public keys only: each `v1a` entry of the header with each
 * key, in an implementation of Ed25519 that is not Node's. Returns the ids of the keys that verify one.
 */
export async function verifiedBy(
  { keys }: JwkSet,
  { headers, body }: Pick<Received, 'headers' | 'body'>,
): Promise<string[]> {
  const signed = Buffer.from(
    `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.`,
  );
  const content = Buffer.concat([signed, body]);
  const verified: string[] = [];
  for (const entry of String(headers['webhook-signature']).split(' ')) {
    const [version, base64 = ''] = entry.split(',');
    if (version !== 'v1a') continue;
    for (const { kid, x } of keys) {
      const signature = Buffer.from(base64, 'base64');
      const key = Buffer.from(x, 'base64url');
      if (await verifyAsync(signature, content, key)) verified.push(kid);
    }
  }
  return verified;
}
