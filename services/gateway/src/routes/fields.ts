import { exampleId, text, wholeNumber } from '@posthorn/domain/field-types.ts';
import { idPattern, type IdPrefix } from '@posthorn/domain/ids.ts';
import { z } from 'zod';

export { timeText } from '@posthorn/domain/field-types.ts';
export { environment, name } from '@posthorn/domain/object-fields.ts';

export {
  describeHold,
  exampleId,
  headerFields,
  heldField,
  idField,
  idText,
  isoTime,
  metadataField,
  metadataOf,
  metadataText,
  optionalFields,
  removableFields,
  text,
  timeField,
  uid,
  wholeNumber,
} from '@posthorn/domain/field-types.ts';

/** For updates of what may have a uid. */
export const upsertQuery = z.object({
  upsert: z.enum(['true', 'false'], 'must be true or false').default('false').meta({
    description:
      'With `true`, the address has a `uid:`, and the body is that of a creation: what has the uid is updated, and created when nothing has it',
  }),
});

/** A whole number in a query string, where every value is text. */
export function wholeNumberText(min: number, max: number) {
  const problem = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,9}$/, problem)
    .transform(Number)
    .pipe(z.int().min(min, problem).max(max, problem));
}

export const limit = (max: number, byDefault: number) =>
  wholeNumberText(1, max)
    .prefault(String(byDefault))
    .meta({ description: 'Most entries that the page may hold' });

export const skip = wholeNumberText(0, 999_999_999)
  .prefault('0')
  .meta({ description: 'Number of entries to skip before the page' });

export const cursor = (prefix: IdPrefix) =>
  z
    .string()
    .regex(idPattern(prefix), 'is not a cursor of this list')
    .meta({ description: '`nextCursor` of the previous page', example: exampleId(prefix) });

const DAY_SECONDS = 86_400;
const WEEK_SECONDS = 604_800;

/** How long a rotated secret or key works beside the new one. */
export const graceSeconds = wholeNumber(0, WEEK_SECONDS)
  .meta({ default: DAY_SECONDS })
  .nullish()
  .transform((given) => given ?? DAY_SECONDS);

/** The longest is a uid with its mark. */
const ID_CHARS = 133;

/** Ids in a query string, with commas between them: see `idsIn`. A route that has them as `ids` names their kind. */
export const idList = (max: number) =>
  text(1, max * ID_CHARS)
    .regex(/^[\w.:-]+(,[\w.:-]+)*$/, 'must be ids with commas between them')
    .refine((list) => idsIn(list).length <= max, `must be at most ${max} ids`)
    .meta({ description: `Only these, at most ${max}, with commas between them` });

export const idsIn = (list: string): string[] => list.split(',');
