import { STORE_PAYLOADS } from '@posthorn/domain/message/not-stored.ts';
import type { AppDocument } from '@posthorn/platform/mongo/documents/documents.ts';
import { z } from 'zod';
import { idField, isoTime, timeField } from './fields.ts';

/** Without the project of the app (docs/contract.md C5.5). */
export const appSchema = z
  .object({
    id: idField('app'),
    name: z.string(),
    description: z.string().meta({ description: 'Empty when none was given' }),
    environment: z.enum(['development', 'production']),
    createdAt: timeField,
    updatedAt: timeField,
    storeResponses: z.boolean().optional().meta({ description: 'Absent until it is given' }),
    storePayloads: z
      .enum(STORE_PAYLOADS)
      .optional()
      .meta({ description: 'Absent until it is given' }),
  })
  .meta({ id: 'App' });

export function describeApp(document: AppDocument): z.infer<typeof appSchema> {
  const { _id, name, description, environment, createdAt, updatedAt } = document;
  const { storeResponses, storePayloads } = document;
  return {
    id: _id,
    name,
    description,
    environment,
    createdAt: isoTime(createdAt),
    updatedAt: isoTime(updatedAt),
    ...(storeResponses !== undefined && { storeResponses }),
    ...(storePayloads !== undefined && { storePayloads }),
  };
}
