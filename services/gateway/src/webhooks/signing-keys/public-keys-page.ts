import { isId } from '@posthorn/domain/ids/ids.ts';
import {
  publicJwkOf,
  type PublicJwk,
  type SigningKeys,
} from '@posthorn/domain/request/signing-keys.ts';
import { Router } from 'express';
import { refuseMethod } from '../../http/refuse-method.ts';
import type { RequestDeadlines } from '../../http/connections/request-deadlines.ts';

/** Null for a company without keys, and for an unknown one. */
export type FindPublicKeys = (companyId: string) => Promise<SigningKeys | null>;

export interface PublicKeysDeps {
  findPublicKeys: FindPublicKeys;
  deadlines: Pick<RequestDeadlines, 'within'>;
}

export const PUBLIC_KEYS_PATH = '/.well-known/webhooks-keys/:companyId';

/** Much shorter than the default grace, so that a rotated key is known long before it signs alone. */
const CACHE_CONTROL = 'public, max-age=300';

/**
 * Serves the public keys of each company as a JWK Set (RFC 7517, RFC 8037) to everyone, without an API
 * key. An unknown company gets the same response as one without keys (docs/contract.md C16.4).
 */
export function publicKeysPage({ findPublicKeys, deadlines }: PublicKeysDeps): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.get(PUBLIC_KEYS_PATH, async (request, response) => {
    const { companyId } = request.params;
    const keys = isId('comp', companyId)
      ? await deadlines.within(response, findPublicKeys(companyId))
      : null;
    response
      .set({ 'Cache-Control': CACHE_CONTROL, 'Content-Type': 'application/jwk-set+json' })
      .send(Buffer.from(JSON.stringify({ keys: keys ? jwksOf(keys) : [] })));
  });
  router.all(PUBLIC_KEYS_PATH, refuseMethod(['GET']));
  return router;
}

/** The key that signs alone after the grace comes first. */
function jwksOf({ current, previous }: SigningKeys): PublicJwk[] {
  const keys = previous ? [current, previous.key] : [current];
  return keys.map(publicJwkOf);
}
