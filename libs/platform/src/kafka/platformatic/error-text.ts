import { messageOf } from '../../service/errors.ts';

/** What went wrong, on one line: the client hides the refusals of a broker inside of another error. */
export function errorText(error: unknown): string {
  const inner = error instanceof AggregateError ? error.errors.map(errorText) : [];
  return [messageOf(error), ...inner].join(' ');
}
