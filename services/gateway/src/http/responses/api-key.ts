import { SCOPES } from '@posthorn/domain/access/scopes.ts';
import type { ApiKeyDocument } from '@posthorn/platform/mongo/documents/documents.ts';
import { z } from 'zod';
import { idField, isoTime, timeField } from './fields.ts';

export const apiKeySchema = z
  .object({
    id: idField('key'),
    name: z.string(),
    prefix: z.string().meta({ description: 'The first characters of the key' }),
    scopes: z.array(z.enum(SCOPES)).meta({ description: 'What the key may do' }),
    appId: idField('app').nullable().meta({
      description: 'The only app that the key may be used for; null for the whole company',
    }),
    expiresAt: timeField.nullable().meta({ description: 'Null for never' }),
    lastUsedAt: timeField
      .nullable()
      .meta({ description: 'To the minute; null before the first use' }),
    ofLink: z.boolean().meta({
      description:
        'A sign-in link or a portal link made it, for its session. Nobody knows the key, and it cannot be rotated',
    }),
    createdAt: timeField,
  })
  .meta({ id: 'ApiKey' });

export const createdApiKeySchema = z
  .object({
    ...apiKeySchema.shape,
    key: z.string().meta({
      description: 'The key itself. Returned here only',
      example: 'phk_Y2hvb3NlIHlvdXIgb3duIGtleSB3aXNlbHksIGZyaWVuZHM4RkQ2',
    }),
  })
  .meta({ id: 'CreatedApiKey' });

export function describeApiKey(
  document: Omit<ApiKeyDocument, 'hash'>,
): z.infer<typeof apiKeySchema> {
  const { _id, name, prefix, scopes = SCOPES, appId, expiresAt, lastUsedAt } = document;
  return {
    id: _id,
    name,
    prefix,
    scopes: [...scopes],
    appId: appId ?? null,
    expiresAt: expiresAt ? isoTime(expiresAt) : null,
    lastUsedAt: lastUsedAt ? isoTime(lastUsedAt) : null,
    ofLink: document.removeAt !== undefined,
    createdAt: isoTime(document.createdAt),
  };
}
