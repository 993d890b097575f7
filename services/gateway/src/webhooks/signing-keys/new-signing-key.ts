import { generateKeyPairSync } from 'node:crypto';
import type { SigningKey } from '@posthorn/domain/request/signing-keys.ts';

/** Returns a random Ed25519 key pair. */
export function newKeyPair(): Pick<SigningKey, 'privateKey' | 'publicKey'> {
  const { d, x } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  if (d === undefined || x === undefined) throw new Error('Node made no Ed25519 key');
  return { privateKey: d, publicKey: x };
}
