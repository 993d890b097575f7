import { CAPABILITIES } from '@posthorn/domain/access/capabilities.ts';
import { z } from 'zod';

/** How long a person stays signed in. A visit of the portal ends with its link. */
export const SESSION_MS = 12 * 3_600_000;

const common = {
  companyId: z.string(),
  /** SHA-256 of the API key, in hex: no one can use it in place of the key. */
  keyHash: z.string(),
  /** Milliseconds since 1970. */
  endsAtMs: z.number(),
};

const companySchema = z.object({ kind: z.literal('company'), ...common });

const portalSchema = z.object({
  kind: z.literal('portal'),
  ...common,
  appId: z.string(),
  linkId: z.string(),
  /** By which the theme of the link is found. */
  tokenHash: z.string(),
  capabilities: z.array(z.enum(CAPABILITIES)),
});

/**
 * What the cookie of a session states. It grants nothing by itself: what its key may do, and whether the key
 * still exists, is looked up with each request, as for the key itself.
 */
export const sessionSchema = z.discriminatedUnion('kind', [companySchema, portalSchema]);

export type Session = z.infer<typeof sessionSchema>;
export type PortalSession = z.infer<typeof portalSchema>;
export type SessionKind = Session['kind'];
