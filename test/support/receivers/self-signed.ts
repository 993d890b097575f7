import { generateKeyPairSync, sign } from 'node:crypto';
import { isIPv4 } from 'node:net';

/** A new key and its self-signed certificate, in PEM; generated, so that none is stored or expires. */
export interface SelfSigned {
  key: string;
  cert: string;
}

/** DER (ITU-T X.690): a tag, the length in as few bytes as it needs (browsers refuse more), the content. */
function der(tag: number, ...parts: (Buffer | string)[]): Buffer {
  const content = Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)),
  );
  const { length } = content;
  if (length < 128) return Buffer.concat([Buffer.from([tag, length]), content]);
  if (length < 256) return Buffer.concat([Buffer.from([tag, 0x81, length]), content]);
  return Buffer.concat([Buffer.from([tag, 0x82, length >> 8, length & 255]), content]);
}

const SEQUENCE = 0x30;
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));
const ECDSA_WITH_SHA256 = der(SEQUENCE, oid('2a8648ce3d040302'));
const COMMON_NAME = '550403';
const SUBJECT_ALT_NAME = '551d11';
const BASIC_CONSTRAINTS = '551d13';

function utcTime(atMs: number): Buffer {
  const digits = new Date(atMs).toISOString().replace(/\D/g, '');
  return der(0x17, `${digits.slice(2, 14)}Z`);
}

export interface SelfSignedOptions {
  validFromMs?: number;
  validUntilMs?: number;
}

/** An authority, which issues certificates, and its name. */
export interface Authority extends SelfSigned {
  name: string;
}

/** Generates an authority that another one has issued, or itself. */
export function authority(name: string, issuer?: Authority): Authority {
  return { name, ...generate({ host: name, issuer, isAuthority: true }) };
}

/** Generates a certificate for DNS names or IPv4 addresses, one at least, that an authority has issued. */
export function issuedBy(issuer: Authority, host: string, ...more: string[]): SelfSigned {
  return generate({ host, more, issuer, isAuthority: false });
}

function nameOf(host: string): Buffer {
  if (!isIPv4(host)) return der(0x82, host);
  return der(0x87, Buffer.from(host.split('.').map(Number)));
}

/** Generates a certificate of its own for one DNS name or IPv4 address; by default it is valid from a day ago for two days. */
export function selfSigned(host: string, options: SelfSignedOptions = {}): SelfSigned {
  return generate({ host, isAuthority: false, ...options });
}

interface CertificateOptions extends SelfSignedOptions {
  host: string;
  /** Further names and addresses. */
  more?: readonly string[];
  /** The certificate is self-signed without it. */
  issuer?: Authority | undefined;
  isAuthority: boolean;
}

const namedBy = (text: string): Buffer =>
  der(SEQUENCE, der(0x31, der(SEQUENCE, oid(COMMON_NAME), der(0x0c, text))));

/** A certificate of version 3 (RFC 5280). */
function generate({
  host,
  more = [],
  issuer,
  isAuthority,
  validFromMs = Date.now() - 86_400_000,
  validUntilMs = Date.now() + 86_400_000,
}: CertificateOptions): SelfSigned {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const names = der(
    SEQUENCE,
    oid(SUBJECT_ALT_NAME),
    der(0x04, der(SEQUENCE, ...[host, ...more].map(nameOf))),
  );
  const constraints = der(
    SEQUENCE,
    ...[oid(BASIC_CONSTRAINTS), der(0x04, der(SEQUENCE, der(0x01, '\xff')))],
  );
  const body = der(
    SEQUENCE,
    ...[der(0xa0, der(0x02, '\x02')), der(0x02, '\x01'), ECDSA_WITH_SHA256],
    ...[namedBy(issuer?.name ?? host), der(SEQUENCE, utcTime(validFromMs), utcTime(validUntilMs))],
    namedBy(host),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(SEQUENCE, names, ...(isAuthority ? [constraints] : []))),
  );
  const signature = der(0x03, '\0', sign('sha256', body, issuer?.key ?? privateKey));
  const base64 = der(SEQUENCE, body, ECDSA_WITH_SHA256, signature).toString('base64');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
  };
}
