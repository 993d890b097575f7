import { isId } from '@posthorn/domain/ids.ts';
import {
  type PublicJwk,
  publicJwkOf,
  type SigningKey,
  type SigningKeys,
  standardPublicKey,
} from '@posthorn/domain/request/signature.ts';
import { Router } from 'express';
import { z } from 'zod';
import type { Gateway } from '../gateway.ts';
import { refuseMethod } from '../http/known-routes.ts';
import type { RequestDeadlines } from '../http/request-deadlines.ts';
import { route, type Route } from '../http/route.ts';
import type { FindPublicKeys } from '../webhooks/signing-keys.ts';
import { graceSeconds, idField, isoTime, timeField } from './fields.ts';

const signingKeySchema = z
  .object({
    id: idField('skey').meta({ description: 'The `kid` of the key in the JWK Set' }),
    algorithm: z.literal('ed25519'),
    publicKey: z.string().meta({
      description: '`whpk_` and the base64 of 32 bytes, as Standard Webhooks spells it',
      example: 'whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=',
    }),
    createdAt: timeField,
    expiresAt: timeField
      .nullable()
      .meta({ description: 'When it stops signing; null until it is rotated' }),
  })
  .meta({ id: 'SigningKey' });

type ShownSigningKey = z.infer<typeof signingKeySchema>;

function describeSigningKey(source: SigningKey, expiresAtMs: number | null): ShownSigningKey {
  return {
    id: source.id,
    algorithm: 'ed25519',
    publicKey: standardPublicKey(source),
    createdAt: isoTime(source.createdAtMs),
    expiresAt: expiresAtMs === null ? null : isoTime(expiresAtMs),
  };
}

/** Oldest first, as other lists. */
function describeSigningKeys({ current, previous }: SigningKeys): ShownSigningKey[] {
  const newest = describeSigningKey(current, null);
  return previous ? [describeSigningKey(previous.key, previous.expiresAtMs), newest] : [newest];
}

const tag = 'Signing keys';
const path = '/signing-keys';

const rotateBody = z
  .object({
    graceSeconds: graceSeconds.meta({
      description: 'How long the old key signs beside the new one, in seconds',
    }),
  })
  .meta({ id: 'RotateSigningKey' });

/** See docs/contract.md C16. */
export function signingKeyRoutes(gateway: Gateway): Route[] {
  return [listSigningKeys(gateway), rotateSigningKey(gateway)];
}

function listSigningKeys({ companyKeys }: Gateway): Route {
  return route({
    operationId: 'listSigningKeys',
    method: 'get',
    path,
    versionedOnly: true,
    scope: 'read',
    isForCompanyOnly: true,
    tag,
    summary: 'List the signing keys, oldest first',
    description:
      'The keys that sign the deliveries of webhooks with `signatureAlgorithm: ed25519`, at most two. The first one is made when the first such webhook is. Receivers get the public keys from `GET /.well-known/webhooks-keys/{companyId}`, without an API key.',
    response: { status: 200, message: 'Signing keys found', data: z.array(signingKeySchema) },
    async handle({ caller: { companyId } }) {
      const keys = await companyKeys.find(companyId);
      return { data: keys ? describeSigningKeys(keys) : [] };
    },
  });
}

function rotateSigningKey({ companyKeys }: Gateway): Route {
  return route({
    operationId: 'rotateSigningKey',
    method: 'post',
    path: `${path}/rotate`,
    versionedOnly: true,
    scope: 'keys:write',
    isForCompanyOnly: true,
    audit: { action: 'signing_key.rotated', target: 'signingKey' },
    tag,
    summary: 'Make a new signing key',
    description:
      'During the grace period both keys are published, and `webhook-signature` holds a signature of each. Another rotation ends the grace period of the one before: rotate again only when receivers have read the new key.',
    body: rotateBody,
    isBodyOptional: true,
    response: { status: 201, message: 'Signing key created', data: signingKeySchema },
    creation: {
      async find({ caller: { companyId }, newId }) {
        const { current, previous } = (await companyKeys.find(companyId)) ?? {};
        const found = [current, previous?.key].find((key) => key?.id === newId('skey'));
        return found ? { data: describeSigningKey(found, null) } : null;
      },
    },
    async handle({ caller: { companyId }, body: { value }, newId }) {
      const { graceSeconds } = value;
      const key = await companyKeys.rotate(companyId, { id: newId('skey'), graceSeconds });
      return { data: describeSigningKey(key, null) };
    },
  });
}

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
