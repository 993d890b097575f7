import { X509Certificate } from 'node:crypto';
import type { EndpointTls } from '@posthorn/domain/webhook.ts';
import { pemCertificatesIn } from '@posthorn/platform/tls/pem-certificates.ts';
import { z } from 'zod';
import { isoTime, timeField } from './fields.ts';

const certificates = z.array(
  z.object({
    subject: z.string().meta({ example: 'CN=posthorn, O=Example' }),
    issuer: z.string(),
    fingerprint256: z.string().meta({ description: 'SHA-256 of the certificate' }),
    notBefore: timeField,
    notAfter: timeField,
  }),
);

/** Shows certificates, which any endpoint may see, and no key. */
export const endpointTlsSchema = z
  .object({ certificate: certificates, ca: certificates })
  .meta({ id: 'ShownTls', description: 'Present when the webhook has TLS settings of its own' });

export function describeEndpointTls({
  client,
  ca,
}: EndpointTls): z.infer<typeof endpointTlsSchema> {
  return {
    certificate: client ? describeCertificates(client.certificate) : [],
    ca: ca === null ? [] : describeCertificates(ca),
  };
}

function describeCertificates(pem: string): z.infer<typeof certificates> {
  return pemCertificatesIn(pem).map((text) => {
    const { subject, issuer, fingerprint256, validFromDate, validToDate } = new X509Certificate(
      text,
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
