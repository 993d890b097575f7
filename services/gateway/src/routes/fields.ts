import { z } from 'zod';

/** Fields that several resources share (docs: api-decisions, Fields). */
export const name = z
  .string('must be text')
  .min(1, 'must have 1 to 100 characters')
  .max(100, 'must have 1 to 100 characters');

export const description = z.string('must be text').max(1_000, 'must have at most 1000 characters');

export const environment = z.enum(
  ['development', 'production'],
  'must be development or production',
);

/** An id as text; whether it exists is another question, answered with 404. */
export const idText = z.string('must be text').min(1, 'must not be empty').max(128, 'is too long');
