import type { ApiKeyDocument } from '@posthorn/platform/mongo/documents.ts';
import { z } from 'zod';
import { idField, isoTime, timeField } from './fields.ts';

export const apiKey = z
  .object({
    id: idField('key'),
    name: z.string(),
    prefix: z.string().meta({ description: 'The first characters of the key' }),
    createdAt: timeField,
  })
  .meta({ id: 'ApiKey' });

export const createdApiKey = z
  .object({
    ...apiKey.shape,
    key: z.string().meta({
      description: 'The key itself; shown here and never again',
      example: 'phk_Y2hvb3NlIHlvdXIgb3duIGtleSB3aXNlbHksIGZyaWVuZHM',
    }),
  })
  .meta({ id: 'CreatedApiKey' });

export function describeApiKey(document: Omit<ApiKeyDocument, 'hash'>): z.infer<typeof apiKey> {
  const { _id, name, prefix, createdAt } = document;
  return { id: _id, name, prefix, createdAt: isoTime(createdAt) };
}
