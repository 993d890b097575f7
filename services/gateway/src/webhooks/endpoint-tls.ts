import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { EndpointTls } from '@posthorn/domain/webhook.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import { hasOtherPem, pemCertificatesIn } from '@posthorn/platform/tls/pem-certificates.ts';
import { readClientKey, type ClientKeyResult } from './client-key.ts';

/** What a request gives for `tls`, in PEM (docs/contract.md C6.17). */
export interface TlsFields {
  certificate?: string | undefined;
  key?: string | undefined;
  ca?: string | undefined;
}

export interface TlsProblem {
  path: keyof TlsFields;
  message: string;
}

/** Either what a webhook gets, or why it does not. */
export type TlsResult =
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
