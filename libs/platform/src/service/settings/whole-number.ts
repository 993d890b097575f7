import { z } from 'zod';

/**
 * Returns the schema of a setting that is a whole number from `from` to `to`. `what` names it in the error, with
 * its unit: 'milliseconds', 'a port'.
 */
export function wholeNumber(from: number, to: number, what = 'a whole number') {
  const limits = to === Infinity ? `from ${from}` : `from ${from} to ${to}`;
  const message = `must be ${what} ${limits}`;
  return z.coerce.number(message).int(message).min(from, message).max(to, message);
}
