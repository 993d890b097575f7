import { z } from 'zod';

export const sealedFields = z.object({
  secret: z.string(),
  /** JSON of a RetiringSecret. Its end is sealed too, so that nobody can extend the grace period. */
  previousSecret: z.string().nullable(),
  /** JSON of an AuthMethod. */
  authMethod: z.string(),
  /** JSON of Header[]. */
  customHeaders: z.string(),
  /** JSON of EndpointTls; absent without. */
  tls: z.string().optional(),
});

/** The fields of a webhook that only the holder of a key can read. Each value is sealed by itself. */
export type SealedFields = z.infer<typeof sealedFields>;
