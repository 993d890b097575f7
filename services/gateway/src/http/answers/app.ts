import type { AppDocument } from '@posthorn/platform/mongo/documents.ts';
import { z } from 'zod';
import { idField, isoTime, timeField } from './fields.ts';

/** The contract does not return the project of an app. */
export const app = z
  .object({
    id: idField('app'),
    name: z.string(),
    description: z.string().meta({ description: 'Empty when none was given' }),
    environment: z.enum(['development', 'production']),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'App' });

export function describeApp(document: AppDocument): z.infer<typeof app> {
  const { _id, name, description, environment, createdAt, updatedAt } = document;
  return {
    id: _id,
    name,
    description,
    environment,
    createdAt: isoTime(createdAt),
    updatedAt: isoTime(updatedAt),
  };
}
