import { z } from 'zod';

/** How long a person stays signed in. */
export const SESSION_MS = 12 * 3_600_000;

/**
 * What the cookie of a session states. It grants nothing by itself: what its key may do, and whether the key
 * still exists, is looked up with each request, as for the key itself.
 */
export const sessionSchema = z.object({
  kind: z.literal('company'),
  companyId: z.string(),
  /** SHA-256 of the API key, in hex: no one can use it in place of the key. */
  keyHash: z.string(),
  /** Milliseconds since 1970. */
  endsAtMs: z.number(),
});

export type Session = z.infer<typeof sessionSchema>;
