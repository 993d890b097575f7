import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { z } from 'zod';
import { tlsOf } from '../../../../webhooks/endpoint-tls.ts';
import { text } from '../../fields.ts';

const MAX_PEM_CHARS = 8_192;

const pem = text(1, MAX_PEM_CHARS);

/** Keys are single words: only the keys of the body itself may be written in snake_case. */
export const tlsField = z
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
    const result = tlsOf(fields, systemClockMs());
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
