import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { isoTime, text, timeField } from './field-types.ts';

/** The certificates and keys that TLS to the endpoint uses instead of the defaults, in PEM (docs/contract.md C6.17). */
export interface EndpointTls {
  /** The chain that proves the sender to the endpoint, its own certificate first; null for none. */
  client: { certificate: string; key: string } | null;
  /** The only authorities that may have issued the endpoint's certificate; null for those that Node trusts. */
  ca: string | null;
}

/** The `tls` of a request, in PEM. */
export interface TlsFields {
  certificate?: string | undefined;
  key?: string | undefined;
  ca?: string | undefined;
}

export interface TlsChecks {
  nowMs: () => number;
  /** Returns why OpenSSL refuses a certificate with its key, or authorities; null when it accepts them. */
  refusalOfOpenSsl: (options: { cert?: string; key?: string; ca?: string }) => string | null;
}

interface TlsProblem {
  path: keyof TlsFields;
  message: string;
}

/** Either what a webhook gets, or why it does not. */
type TlsResult =
  { kind: 'settings'; tls: EndpointTls } | { kind: 'refused'; problems: TlsProblem[] };

const MAX_PEM_CHARS = 8_192;

const pem = text(1, MAX_PEM_CHARS);

/** `tls` in a request. Keys are single words: only the keys of the body itself may be written in snake_case. */
export function tlsText(checks: TlsChecks) {
  return z
    .strictObject({
      certificate: pem.optional().meta({
        description: 'What proves the deliveries to the endpoint, then the authorities between',
      }),
      key: pem.optional().meta({
        description:
          'Private key of the first certificate, not encrypted. RSA of 2,048 to 4,096 bits, or better P-256. No response shows it',
      }),
      ca: pem.optional().meta({
        description:
          'The only authorities that may have issued the certificate of the endpoint. Without it, the public ones',
      }),
    })
    .transform((fields, context) => {
      const result = tlsOf(fields, checks);
      if (result.kind === 'settings') return result.tls;
      for (const { path, message } of result.problems) {
        context.addIssue({ code: 'custom', path: [path], message });
      }
      return z.NEVER;
    })
    .meta({
      id: 'EndpointTls',
      minProperties: 1,
      dependentRequired: { certificate: ['key'], key: ['certificate'] },
      description: 'TLS to the endpoint, in PEM; at most 5 certificates in each',
    })
    .nullable();
}

const certificates = z.array(
  z
    .object({
      subject: z.string().meta({ example: 'CN=posthorn, O=Example' }),
      issuer: z.string(),
      fingerprint256: z.string().meta({ description: 'SHA-256 of the certificate' }),
      notBefore: timeField,
      notAfter: timeField,
    })
    .meta({ id: 'ShownCertificate' }),
);

/** `tls` in a response: the certificates, which any endpoint may see, and no key. */
export const tlsResponse = z
  .object({ certificate: certificates, ca: certificates })
  .meta({ id: 'ShownTls', description: 'Present when the webhook has TLS settings of its own' })
  .optional();

export function describeTls(tls: EndpointTls | null): z.infer<typeof tlsResponse> {
  if (!tls) return undefined;
  const { client, ca } = tls;
  return {
    certificate: client ? describeCertificates(client.certificate) : [],
    ca: ca === null ? [] : describeCertificates(ca),
  };
}

function describeCertificates(pem: string): z.infer<typeof certificates> {
  return pemCertificatesIn(pem).map((block) => {
    const { subject, issuer, fingerprint256, validFromDate, validToDate } = new X509Certificate(
      block,
    );
    return {
      subject: onOneLine(subject),
      issuer: onOneLine(issuer),
      fingerprint256,
      notBefore: isoTime(validFromDate.getTime()),
      notAfter: isoTime(validToDate.getTime()),
    };
  });
}

/** Node returns each part of a name on a line of its own, and nothing for an empty name. */
function onOneLine(name: string | undefined): string {
  return (name ?? '').replaceAll('\n', ', ');
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

/** Returns the certificates of a text in PEM (RFC 7468), each a text; without the comments that bundles have. */
function pemCertificatesIn(text: string): string[] {
  return text.match(CERTIFICATE) ?? [];
}

/** Whether the text has something else in PEM, such as a private key, or a certificate that is cut off. */
function hasOtherPem(text: string): boolean {
  return text.replaceAll(CERTIFICATE, '').includes('-----');
}

const MAX_CERTIFICATES = 5;

/**
 * Checks that certificates can be read and have not expired, that the key belongs to its certificate, and that
 * OpenSSL takes them, so that these mistakes are found when a webhook is saved and not by its deliveries.
 */
export function tlsOf(fields: TlsFields, { nowMs, refusalOfOpenSsl }: TlsChecks): TlsResult {
  const { certificate, ca } = fields;
  const now = nowMs();
  const read = fields.key === undefined ? null : readClientKey(fields.key);
  const problems = [
    ...(certificate === undefined ? [] : problemsOfCertificates('certificate', certificate, now)),
    ...(ca === undefined ? [] : problemsOfCertificates('ca', ca, now)),
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
  const refusals = refusalsOf(tls, refusalOfOpenSsl);
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
function refusalsOf(
  { client, ca }: EndpointTls,
  refusalOfOpenSsl: TlsChecks['refusalOfOpenSsl'],
): TlsProblem[] {
  const ofClient = client && refusalOfOpenSsl({ cert: client.certificate, key: client.key });
  const ofAuthorities = ca === null ? null : refusalOfOpenSsl({ ca });
  const message = (refusal: string): string => `is refused by OpenSSL: ${refusal}`;
  return [
    ...(ofClient === null ? [] : [{ path: 'certificate' as const, message: message(ofClient) }]),
    ...(ofAuthorities === null ? [] : [{ path: 'ca' as const, message: message(ofAuthorities) }]),
  ];
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
