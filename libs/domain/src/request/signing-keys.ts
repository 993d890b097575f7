import { createPrivateKey, type KeyObject } from 'node:crypto';

/** A key pair of a company. It signs the deliveries of the company's webhooks with `ed25519`. */
export interface SigningKey {
  id: string;
  companyId: string;
  /** 1 for the first key of the company; each rotation adds one. */
  number: number;
  /** Both are 32 bytes (RFC 8032, 5.1.5) in base64url. */
  privateKey: string;
  publicKey: string;
  createdAtMs: number;
  /** Until when the key before signs beside this one, since 1970; null for the first key. */
  previousUntilMs: number | null;
}

/** The keys of a company that sign now. */
export interface SigningKeys {
  current: SigningKey;
  /** The key before it, during the grace of a rotation. */
  previous: { key: SigningKey; expiresAtMs: number } | null;
}

/** The keys of a company, made once: to read one takes longer than to sign with it. */
export interface KeyPairSigner {
  kind: 'key_pair';
  standard: KeyObject;
  /** Signs beside the new key until `expiresAtMs` (since 1970); null without a rotation. */
  previous: { key: KeyObject; expiresAtMs: number } | null;
}

export function keyPairSignerOf({ current, previous }: SigningKeys): KeyPairSigner {
  return {
    kind: 'key_pair',
    standard: keyObjectOf(current),
    previous: previous && {
      key: keyObjectOf(previous.key),
      expiresAtMs: previous.expiresAtMs,
    },
  };
}

function keyObjectOf({ privateKey: d, publicKey: x }: SigningKey): KeyObject {
  return createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' });
}

/** A public key as RFC 7517 and RFC 8037 spell it. */
export interface PublicJwk {
  kty: 'OKP';
  crv: 'Ed25519';
  x: string;
  kid: string;
  use: 'sig';
  alg: 'EdDSA';
}

export function publicJwkOf({
  id: kid,
  publicKey: x,
}: Pick<SigningKey, 'id' | 'publicKey'>): PublicJwk {
  return { kty: 'OKP', crv: 'Ed25519', x, kid, use: 'sig', alg: 'EdDSA' };
}

/** Returns the public key as Standard Webhooks 1.0 spells it: `whpk_` and base64. */
export function standardPublicKey({ publicKey }: Pick<SigningKey, 'publicKey'>): string {
  return `whpk_${Buffer.from(publicKey, 'base64url').toString('base64')}`;
}
