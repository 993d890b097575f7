import { isId } from '@posthorn/domain/ids/ids.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import { DEAD_LETTER_REASONS } from '@posthorn/platform/dead-letters/dead-letter-record.ts';
import { z } from 'zod';
import { parseOptions, timeOption as time } from '../parse-options.ts';
import type { Letter } from './read-letter.ts';

const id = (prefix: 'wh' | 'msg') =>
  z.string().refine((text) => isId(prefix, text), `must be an id such as ${prefix}_…`);

const filterSchema = z.object({
  reason: z
    .enum(DEAD_LETTER_REASONS, `must be one of ${DEAD_LETTER_REASONS.join(', ')}`)
    .optional(),
  sourceTopic: z.string().optional(),
  webhook: id('wh').optional(),
  message: id('msg').optional(),
  since: time.optional(),
  until: time.optional(),
});

/** Selects letters. A field that is not given matches every letter. Both times are inclusive. */
export type LetterFilter = z.output<typeof filterSchema>;

export const MAX_LISTED = 10_000;

const limitSchema = z.coerce
  .number('must be a whole number')
  .int('must be a whole number')
  .min(1, `must be from 1 to ${MAX_LISTED}`)
  .max(MAX_LISTED, `must be from 1 to ${MAX_LISTED}`);

const placeSchema = z
  .string()
  .regex(/^\d{1,9}:\d{1,15}$/, 'must be partition:offset, as the list shows it');

/** Throws an error that names every invalid option. */
export function parseFilter(options: object): LetterFilter {
  return parseOptions(filterSchema, options);
}

export function parseLimit(limit: string): number {
  return parseOptions(z.object({ limit: limitSchema }), { limit }).limit;
}

/** The position of a letter in the topic of dead letters. */
export interface Place {
  partition: number;
  offset: number;
}

export function parsePlace(text: string): Place {
  const { id } = parseOptions(z.object({ id: placeSchema }), { id: text });
  const numbers = id.split(':').map(Number);
  return {
    partition: requiredAt(numbers, 0, 'partition'),
    offset: requiredAt(numbers, 1, 'offset'),
  };
}

/** The letters to replay: the one at `place`, or those that match the filter. */
export interface Selection {
  place: Place | null;
  filter: LetterFilter;
}

/** Throws unless exactly one of id, filters and `--all` is given. */
export function parseSelection(id: string | undefined, options: { all?: boolean }): Selection {
  const filter = parseFilter(options);
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  const ways = [id !== undefined, isFiltered, options.all === true].filter(Boolean);
  if (ways.length === 0) {
    throw new Error(
      'Name a dead letter by its id, give filters, or give --all for every dead letter.',
    );
  }
  if (ways.length > 1) throw new Error('Give an id, filters or --all, not more than one of them.');
  return { place: id === undefined ? null : parsePlace(id), filter };
}

/** The filter may name a topic with or without the prefix of the installation. */
export function matchesFilter(letter: Letter, filter: LetterFilter, prefix: string): boolean {
  const { reason, sourceTopic: topic, webhook, message, since, until } = filter;
  if (reason !== undefined && letter.reason !== reason) return false;
  if (topic !== undefined && ![topic, prefix + topic].includes(letter.source.topic)) return false;
  if (webhook !== undefined && webhookIdOf(letter) !== webhook) return false;
  if (message !== undefined && letter.content?.messageId !== message) return false;
  if (since !== undefined && letter.atMs < since) return false;
  return until === undefined || letter.atMs <= until;
}

/** Records are keyed by webhook id, so that most unreadable records show their webhook too. */
export function webhookIdOf({ content, record }: Letter): string | null {
  return content?.webhookId ?? (isId('wh', record.key) ? record.key : null);
}
