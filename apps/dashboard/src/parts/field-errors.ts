import type { Problem } from '../api/failure.ts';

export type ErrorOf = (field: string) => string | undefined;

/** Returns whether one of these fields of a form says what is wrong. Fields are named as the API names their paths. */
export function isAtOneOf(fields: readonly string[]): (problem: Problem) => boolean {
  return ({ path }) => fields.some((field) => isOf(field, path));
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
