import { createPrivateKey, type KeyObject } from 'node:crypto';

/** Either the key, or why it is refused. */
export type ClientKeyResult = { kind: 'key'; key: KeyObject } | Refusal;

interface Refusal {
  kind: 'refused';
  problem: string;
}

const FORMATS = { 'RSA ': 'pkcs1', 'EC ': 'sec1', '': 'pkcs8' } as const;
const PEM_KEY =
  /-----BEGIN (RSA |EC |)PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END \1PRIVATE KEY-----/;

/** An RSA key of 4,096 bits has 2,376 bytes, and an elliptic curve key less than 250. */
const MAX_RSA_BYTES = 2_400;
const MAX_OTHER_BYTES = 300;
/** Signing takes 3 to 5 ms of the dispatcher with 4,096 bits, and several times that with 8,192. */
const MAX_RSA_BITS = 4_096;
const MAX_EXPONENT = 65_537n;

const TYPES: readonly unknown[] = ['rsa', 'ec', 'ed25519'];
const NOT_A_KEY = 'must be a private key in PEM that is not encrypted';
const KINDS = 'must be an RSA key of at most 4096 bits, or a key of P-256, P-384, P-521 or Ed25519';

/**
 * Reads a private key that a client chose. The size is limited before OpenSSL sees it: for DSA, DH and curves
 * of its own making it computes with numbers of any size while it reads them (7 s for 8,000 characters). RSA
 * factors must belong to the modulus, for it signs with whatever length they have (96 ms instead of 3).
 */
export function readClientKey(pem: string): ClientKeyResult {
  const [, label, base64 = ''] = PEM_KEY.exec(pem) ?? [];
  if (label === undefined) return refused(NOT_A_KEY);
  const type = FORMATS[label as keyof typeof FORMATS];
  const der = Buffer.from(base64, 'base64');
  const isRsa = type === 'pkcs1' || (type === 'pkcs8' && hasRsaAlgorithm(der));
  if (der.length > (isRsa ? MAX_RSA_BYTES : MAX_OTHER_BYTES)) return refused(KINDS);
  const key = tryToRead(der, type);
  if (!key) return refused(NOT_A_KEY);
  if (!TYPES.includes(key.asymmetricKeyType)) return refused(KINDS);
  return key.asymmetricKeyType !== 'rsa' || isSoundRsa(key) ? { kind: 'key', key } : refused(KINDS);
}

function refused(problem: string): Refusal {
  return { kind: 'refused', problem };
}

/** AlgorithmIdentifier of rsaEncryption (RFC 8017, appendix C). */
const RSA_ENCRYPTION = Buffer.from('300d06092a864886f70d0101010500', 'hex');

/** PKCS #8 (RFC 5208): a sequence of the version, the algorithm and the key. */
function hasRsaAlgorithm(der: Buffer): boolean {
  const length = der[1] ?? 0;
  const start = length < 128 ? 2 : 2 + (length & 127);
  const isVersion = der[start] === 2 && der[start + 1] === 1;
  return isVersion && der.subarray(start + 3).indexOf(RSA_ENCRYPTION) === 0;
}

function tryToRead(der: Buffer, type: 'pkcs1' | 'sec1' | 'pkcs8'): KeyObject | null {
  try {
    return createPrivateKey({ key: der, format: 'der', type });
  } catch {
    return null;
  }
}

function isSoundRsa(key: KeyObject): boolean {
  const jwk = key.export({ format: 'jwk' });
  const [p, q] = [numberOf(jwk.p), numberOf(jwk.q)];
  const { modulusLength = Infinity } = key.asymmetricKeyDetails ?? {};
  return (
    modulusLength <= MAX_RSA_BITS &&
    numberOf(jwk.e) <= MAX_EXPONENT &&
    p * q === numberOf(jwk.n) &&
    numberOf(jwk.dp) < p &&
    numberOf(jwk.dq) < q
  );
}

function numberOf(base64url: string | undefined): bigint {
  return BigInt(`0x0${Buffer.from(base64url ?? '', 'base64url').toString('hex')}`);
}
