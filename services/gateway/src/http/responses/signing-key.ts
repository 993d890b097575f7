import {
  standardPublicKey,
  type SigningKey,
  type SigningKeys,
} from '@posthorn/domain/request/signing-keys.ts';
import { z } from 'zod';
import { idField, isoTime, timeField } from './fields.ts';

export const signingKeySchema = z
  .object({
    id: idField('skey').meta({ description: 'The `kid` of the key in the JWK Set' }),
    algorithm: z.literal('ed25519'),
    publicKey: z.string().meta({
      description: '`whpk_` and the base64 of 32 bytes, as Standard Webhooks spells it',
      example: 'whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=',
    }),
    createdAt: timeField,
    expiresAt: timeField
      .nullable()
      .meta({ description: 'When it stops signing; null until it is rotated' }),
  })
  .meta({ id: 'SigningKey' });

type ShownSigningKey = z.infer<typeof signingKeySchema>;

export function describeSigningKey(
  source: SigningKey,
  expiresAtMs: number | null,
): ShownSigningKey {
  return {
    id: source.id,
    algorithm: 'ed25519',
    publicKey: standardPublicKey(source),
    createdAt: isoTime(source.createdAtMs),
    expiresAt: expiresAtMs === null ? null : isoTime(expiresAtMs),
  };
}

/** Oldest first, as other lists. */
export function describeSigningKeys({ current, previous }: SigningKeys): ShownSigningKey[] {
  const newest = describeSigningKey(current, null);
  return previous ? [describeSigningKey(previous.key, previous.expiresAtMs), newest] : [newest];
}
