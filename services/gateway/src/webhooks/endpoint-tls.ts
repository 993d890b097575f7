import type { EndpointTls } from '@posthorn/domain/webhook.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import { hasOtherPem, pemCertificatesIn } from '@posthorn/platform/security/secure-context.ts';
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

/** What a request gives for `tls`, in PEM (docs/contract.md C6.17). */
export interface TlsFields {
  certificate?: string | undefined;
  key?: string | undefined;
  ca?: string | undefined;
}

interface TlsProblem {
  path: keyof TlsFields;
  message: string;
}

/** Either what a webhook gets, or why it does not. */
type TlsResult =
  { kind: 'settings'; tls: EndpointTls } | { kind: 'refused'; problems: TlsProblem[] };

const MAX_CERTIFICATES = 5;

/**
 * Checks that certificates can be read and have not expired, that the key belongs to its certificate, and that
 * OpenSSL takes them, so that these mistakes are found when a webhook is saved and not by its deliveries.
 */
export function tlsOf(fields: TlsFields, nowMs: number): TlsResult {
  const { certificate, ca } = fields;
  const read = fields.key === undefined ? null : readClientKey(fields.key);
  const problems = [
    ...(certificate === undefined ? [] : problemsOfCertificates('certificate', certificate, nowMs)),
    ...(ca === undefined ? [] : problemsOfCertificates('ca', ca, nowMs)),
    ...problemsOfPair(fields, read),
  ];
  if (problems.length > 0) return { kind: 'refused', problems };
  const tls = {
    client:
      certificate === undefined || read?.kind !== 'key'
        ? null
        : {
            certificate: onlyCertificates(certificate),
            key: read.key.export({ type: 'pkcs8', format: 'pem' }).toString(),
          },
    ca: ca === undefined ? null : onlyCertificates(ca),
  };
  const refusals = refusalsOfOpenSsl(tls);
  return refusals.length > 0 ? { kind: 'refused', problems: refusals } : { kind: 'settings', tls };
}

function onlyCertificates(pem: string): string {
  return `${pemCertificatesIn(pem).join('\n')}\n`;
}

function problemsOfCertificates(
  path: 'certificate' | 'ca',
  pem: string,
  nowMs: number,
): TlsProblem[] {
  const message = problemOfCertificates(pem, nowMs);
  return message === null ? [] : [{ path, message }];
}

function problemOfCertificates(pem: string, nowMs: number): string | null {
  const blocks = pemCertificatesIn(pem);
  if (blocks.length === 0 || hasOtherPem(pem)) {
    return 'must be certificates in PEM, and nothing else';
  }
  if (blocks.length > MAX_CERTIFICATES) return `must have at most ${MAX_CERTIFICATES} certificates`;
  for (const [index, block] of blocks.entries()) {
    const problem = problemOfCertificate(block, nowMs);
    if (problem) return `certificate ${index + 1} ${problem}`;
  }
  return null;
}

function problemOfCertificate(block: string, nowMs: number): string | null {
  const certificate = parsed(block);
  // OpenSSL also reads certificates whose dates are none. Node shows them as 'Bad time value'; what it returns as
  // Date is then whatever its memory held, at times a date.
  const [from, to] = [certificate?.validFrom ?? '', certificate?.validTo ?? ''].map((text) =>
    Date.parse(text),
  );
  if (!Number.isFinite(from) || !Number.isFinite(to)) return 'cannot be read';
  return Number(to) <= nowMs ? 'has expired' : null;
}

function problemsOfPair(
  { certificate, ca }: TlsFields,
  read: ClientKeyResult | null,
): TlsProblem[] {
  if (!read) {
    if (certificate !== undefined)
      return [{ path: 'key', message: 'is required with a certificate' }];
    return ca === undefined ? [{ path: 'certificate', message: 'is required, or ca' }] : [];
  }
  if (read.kind === 'refused') return [{ path: 'key', message: read.problem }];
  if (certificate === undefined) {
    return [{ path: 'certificate', message: 'is required with a key' }];
  }
  const [block = ''] = pemCertificatesIn(certificate);
  return parsed(block)?.checkPrivateKey(read.key) === false
    ? [{ path: 'key', message: 'is not the key of the first certificate' }]
    : [];
}

/** OpenSSL refuses, for example, RSA keys of less than 2,048 bits. */
function refusalsOfOpenSsl({ client, ca }: EndpointTls): TlsProblem[] {
  return [
    ...(client ? refusalOf('certificate', { cert: client.certificate, key: client.key }) : []),
    ...(ca === null ? [] : refusalOf('ca', { ca })),
  ];
}

function refusalOf(
  path: keyof TlsFields,
  options: { cert?: string; key?: string; ca?: string },
): TlsProblem[] {
  try {
    createSecureContext(options);
    return [];
  } catch (error) {
    return [{ path, message: `is refused by OpenSSL: ${messageOf(error)}` }];
  }
}

function parsed(certificate: string): X509Certificate | null {
  try {
    return new X509Certificate(certificate);
  } catch {
    return null;
  }
}

/** Either the key, or why it is refused. */
type ClientKeyResult = { kind: 'key'; key: KeyObject } | Refusal;

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
