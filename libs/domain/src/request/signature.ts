import {
  createHmac,
  createPrivateKey,
  createSecretKey,
  type KeyObject,
  sign,
  timingSafeEqual,
} from 'node:crypto';

const SECRET_PREFIX = 'whsec_';

/** Returns 32 random bytes as a webhook secret (Standard Webhooks 1.0, Signature scheme). */
export function secretFromBytes(bytes: Buffer): string {
  return SECRET_PREFIX + bytes.toString('base64');
}

/** Returns the key of the HMAC header (docs/contract.md C9.4): the UTF-8 text of the secret, prefix included. */
export function hmacKey(secret: string): KeyObject {
  return createSecretKey(secret, 'utf8');
}

/** Returns the key of the Standard Webhooks signature: the bytes behind the prefix. */
export function standardKey(secret: string): KeyObject {
  return createSecretKey(secret.slice(SECRET_PREFIX.length), 'base64');
}

/**
 * Returns the HMAC SHA-256 of the raw payload, in hex (docs/contract.md C9.4). `key` may be text, which costs a third
 * less for a single signature.
 */
export function hmacSignature(key: KeyObject | string, payload: Buffer | string): string {
  return createHmac('sha256', key).update(payload).digest('hex');
}

/** The signed content of Standard Webhooks. */
export interface SignedContent {
  messageId: string;
  /** Since 1970. */
  timestampSeconds: number;
  payload: Buffer;
}

/** Returns a `v1,…` entry of `webhook-signature`, which signs id, timestamp (seconds) and raw payload. */
export function standardSignature(key: KeyObject, signed: SignedContent): string {
  const mac = createHmac('sha256', key)
    .update(`${signed.messageId}.${signed.timestampSeconds}.`)
    .update(signed.payload)
    .digest('base64');
  return `v1,${mac}`;
}

/**
 * Returns a `v1a,…` entry of `webhook-signature`, which signs the same content with an Ed25519 key (Standard Webhooks
 * 1.0, asymmetric signatures; RFC 8032). Ed25519 reads its content twice, so the content must be in one buffer.
 */
export function asymmetricSignature(
  key: KeyObject,
  { messageId, timestampSeconds, payload }: SignedContent,
): string {
  const content = Buffer.concat([Buffer.from(`${messageId}.${timestampSeconds}.`), payload]);
  return `v1a,${sign(null, content, key).toString('base64')}`;
}

/**
 * Whether a `webhook-signature` header has a signature by this secret of a webhook (Standard Webhooks 1.0). The age
 * of the timestamp is not checked.
 */
export function isSignedWith(secret: string, header: string, signed: SignedContent): boolean {
  const expected = Buffer.from(standardSignature(standardKey(secret), signed));
  return header.split(' ').some((entry) => {
    const given = Buffer.from(entry);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

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
  /** The end of the grace in which the previous key signs too, since 1970; null for the first key. */
  previousUntilMs: number | null;
}

/** The current signing keys of a company. */
export interface SigningKeys {
  current: SigningKey;
  /** The previous key, during the grace of a rotation. */
  previous: { key: SigningKey; expiresAtMs: number } | null;
}

/** The parsed keys of a company: parsing a key takes longer than signing with it. */
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

/** A public key in the form of RFC 7517 and RFC 8037. */
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

/** Returns the public key in the form of Standard Webhooks 1.0: `whpk_` and base64. */
export function standardPublicKey({ publicKey }: Pick<SigningKey, 'publicKey'>): string {
  return `whpk_${Buffer.from(publicKey, 'base64url').toString('base64')}`;
}
