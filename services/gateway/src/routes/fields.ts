import { idPattern, type IdPrefix } from '@posthorn/domain/ids.ts';
import { z } from 'zod';

/**
 * Text of a bounded length in characters. JSON Schema counts code points; zod alone counts UTF-16 units,
 * of which an emoji has two.
 */
export function text(minChars: number, maxChars: number) {
  const problem =
    minChars === 0
      ? `must have at most ${maxChars} characters`
      : `must have ${minChars} to ${maxChars} characters`;
  const fits = (given: string): boolean => {
    const chars = given.length > 2 * maxChars ? given.length : Array.from(given).length;
    return chars >= minChars && chars <= maxChars;
  };
  return z
    .string('must be text')
    .refine(fits, problem)
    .meta({ ...(minChars > 0 && { minLength: minChars }), maxLength: maxChars });
}

export const name = text(1, 100).meta({ example: 'Orders' });

export const description = text(0, 1_000);

export const environment = z.enum(
  ['development', 'production'],
  'must be development or production',
);

/** Any text: an id that does not exist gets 404, not 400. */
export const idText = (prefix: IdPrefix) => text(1, 128).meta({ example: exampleId(prefix) });

/** A whole number in a query string, where every value is text. */
function wholeNumber(min: number, max: number) {
  const problem = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,9}$/, problem)
    .transform(Number)
    .pipe(z.int().min(min, problem).max(max, problem));
}

export const limit = (max: number, byDefault: number) =>
  wholeNumber(1, max)
    .prefault(String(byDefault))
    .meta({ description: 'Most entries that the page may hold' });

export const skip = wholeNumber(0, 999_999_999)
  .prefault('0')
  .meta({ description: 'Number of entries to skip before the page' });

/** ISO 8601 with a zone. */
export const timeText = z.iso
  .datetime({ offset: true, error: 'must be a time such as 2026-01-31T09:30:00.000Z' })
  .meta({ example: '2026-01-31T09:30:00.000Z' });

export const cursor = (prefix: IdPrefix) =>
  z
    .string()
    .regex(idPattern(prefix), 'is not a cursor of this list')
    .meta({ description: '`nextCursor` of the previous page', example: exampleId(prefix) });

const WEEK_SECONDS = 604_800;
const GRACE_PROBLEM = `must be a whole number from 0 to ${WEEK_SECONDS}`;

/** How long a rotated secret or key works beside the new one. */
export const graceSeconds = z
  .int(GRACE_PROBLEM)
  .min(0, GRACE_PROBLEM)
  .max(WEEK_SECONDS, GRACE_PROBLEM)
  .default(86_400);

const ID_CHARS = 40;

/** Ids in a query string, with commas between them: see `idsIn`. */
export const idList = (max: number) =>
  text(1, max * ID_CHARS)
    .regex(/^\w+(,\w+)*$/, 'must be ids with commas between them')
    .refine((list) => idsIn(list).length <= max, `must be at most ${max} ids`)
    .meta({ description: `Only these, at most ${max}, with commas between them` });

export const idsIn = (list: string): string[] => list.split(',');

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
