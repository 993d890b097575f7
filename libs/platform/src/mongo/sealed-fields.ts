import { z } from 'zod';

export const sealedFields = z.object({
  secret: z.string(),
  /** JSON of a RetiringSecret: a secret cannot be brought back by a later end of its grace. */
  previousSecret: z.string().nullable(),
  /** JSON of an AuthMethod. */
  authMethod: z.string(),
  /** JSON of Header[]. */
  customHeaders: z.string(),
});

/** What of a webhook only the holder of a key can read; each value is sealed by itself. */
export type SealedFields = z.infer<typeof sealedFields>;
