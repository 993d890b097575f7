import type { ProjectDocument } from '@posthorn/platform/mongo/documents/documents.ts';
import { z } from 'zod';
import { idField, isoTime, timeField } from './fields.ts';

/** The create response has no company and environment (docs/contract.md C5.4). */
export const createdProjectSchema = z
  .object({
    id: idField('proj'),
    name: z.string(),
    description: z.string().optional().meta({ description: 'Absent when none was given' }),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'CreatedProject' });

export const projectSchema = z
  .object({
    ...createdProjectSchema.shape,
    company: idField('comp'),
    environment: z.enum(['development', 'production']),
  })
  .meta({ id: 'Project' });

export function describeCreatedProject(
  document: ProjectDocument,
): z.infer<typeof createdProjectSchema> {
  const { _id, name, description, createdAt, updatedAt } = document;
  return {
    id: _id,
    name,
    ...(description !== null && { description }),
    createdAt: isoTime(createdAt),
    updatedAt: isoTime(updatedAt),
  };
}

export function describeProject(document: ProjectDocument): z.infer<typeof projectSchema> {
  const { companyId: company, environment } = document;
  return { ...describeCreatedProject(document), company, environment };
}
