import { z } from 'zod';
import { description, type ObjectTable, SHARED_FIELDS } from './object-fields.ts';

/** The fields that a client gives to a project. */
export const PROJECT_FIELDS = {
  ...SHARED_FIELDS,
  description: {
    contract: 'C5.2',
    request: description,
    given: 'always',
    without: null,
    response: z.string().optional().meta({ description: 'Absent when none was given' }),
    show: (stored: string | null) => stored ?? undefined,
    audit: 'shown',
  },
} as const satisfies ObjectTable;
