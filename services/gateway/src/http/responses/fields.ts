import { idPattern, type IdPrefix } from '@posthorn/domain/ids/ids.ts';
import { z } from 'zod';

/** Returns ISO 8601 in UTC with milliseconds, as every time in the API. Takes milliseconds since 1970, or a date. */
export function isoTime(at: number | Date): string {
  return new Date(at).toISOString();
}

export const timeField = z.iso.datetime({ precision: 3 }).meta({
  id: 'Time',
  description: 'ISO 8601 in UTC with milliseconds',
  example: '2026-01-31T09:30:00.000Z',
});

const EXAMPLE_ULID = '01kdyx3m9e7r8s5tqv2wzcbn4a';

/** Returns a valid id, for the examples of the API document. */
export const exampleId = (prefix: IdPrefix): string => `${prefix}_${EXAMPLE_ULID}`;

export const idField = (prefix: IdPrefix) =>
  z
    .string()
    .regex(idPattern(prefix))
    .meta({ description: `Id with the prefix \`${prefix}_\``, example: exampleId(prefix) });

export const headerFields = z.array(z.object({ key: z.string(), value: z.string() }));
