import { z } from 'zod';

/**
 * An http or https URL of a setting. One with a user and a password is refused: `fetch` does not take it, and
 * the error that it throws would put the password into the log. The exporter of traces would not send them.
 */
export const httpUrl = z
  .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
  .refine((text) => !hasCredentials(text), 'must not have a user or a password');

function hasCredentials(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.username !== '' || url.password !== '');
}
