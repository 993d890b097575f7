import { z } from 'zod';

const message =
  'must be an http or https URL without user, query and fragment, such as https://hooks.example.com/posthorn';

/** Without a slash at its end. */
const publicUrl = z
  .url({ protocol: /^https?$/, error: message })
  .refine((text) => !/[?#@]/.test(text), message)
  .transform((text) => text.replace(/\/+$/, ''));

export const publicUrlSettings = {
  PUBLIC_URL: publicUrl
    .optional()
    .describe(
      'Where browsers reach the gateway, with the path prefix of a proxy in front, such as https://hooks.example.com/posthorn; for links and cookies of the dashboard',
    ),
};
