import { messageOf } from '../../service/errors.ts';

/** Returns the messages of an error on one line: the client wraps the errors of a broker in another error. */
export function errorText(error: unknown): string {
  const inner = error instanceof AggregateError ? error.errors.map(errorText) : [];
  return [messageOf(error), ...inner].join(' ');
}
