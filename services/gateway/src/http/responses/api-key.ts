import type { ApiKeyDocument } from '@posthorn/platform/mongo/documents.ts';
import { z } from 'zod';
import { idField, isoTime, timeField } from './fields.ts';

export const apiKeySchema = z
  .object({
    id: idField('key'),
    name: z.string(),
    prefix: z.string().meta({ description: 'The first characters of the key' }),
    createdAt: timeField,
  })
  .meta({ id: 'ApiKey' });

export const createdApiKeySchema = z
  .object({
    ...apiKeySchema.shape,
    key: z.string().meta({
      description: 'The key itself. Returned here only',
      example: 'phk_Y2hvb3NlIHlvdXIgb3duIGtleSB3aXNlbHksIGZyaWVuZHM',
    }),
  })
  .meta({ id: 'CreatedApiKey' });

export function describeApiKey(
  document: Omit<ApiKeyDocument, 'hash'>,
): z.infer<typeof apiKeySchema> {
  const { _id, name, prefix, createdAt } = document;
  return { id: _id, name, prefix, createdAt: isoTime(createdAt) };
}
