import type { Problem } from '../../../api/failure.ts';
import { BLANK } from './auth-draft.ts';
import { TLS_PARTS } from './tls-rules.ts';

/** The fields of the form, by the path that the API calls them. */
const FIELDS: readonly string[] = [
  'url',
  'name',
  'eventTypes',
  'rateLimitPerSecond',
  'timeoutSeconds',
  'customHeaders',
  'authMethod',
  ...Object.keys(BLANK),
  ...TLS_PARTS.map((part) => `tls.${part}`),
];

export type ErrorOf = (field: string) => string | undefined;

/** Whether a field of the form says what is wrong. */
export function hasField({ path }: Problem): boolean {
  return FIELDS.some((field) => isOf(field, path));
}

/** Returns what is wrong with a field, entry by entry where it holds several. */
export function errorIn(problems: readonly Problem[], field: string): string | undefined {
  const own = problems.filter(({ path }) => isOf(field, path));
  return own.length === 0 ? undefined : own.map((each) => textOf(each, field)).join('; ');
}

const isOf = (field: string, path: string): boolean =>
  path === field || path.startsWith(`${field}.`);

/** `customHeaders.0.value` is about the first entry. */
function textOf({ path, message }: Problem, field: string): string {
  const [index] = path.slice(field.length + 1).split('.');
  return /^\d+$/.test(index ?? '') ? `entry ${Number(index) + 1} ${message}` : message;
}
