import { ALL_SCOPES } from '@posthorn/domain/access/scopes.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { CompanyStore, KeyRecord } from '@posthorn/platform/mongo/companies/companies.ts';
import { hashOfKey, makeApiKey } from '@posthorn/platform/mongo/companies/make-api-key.ts';
import type { Link, LinkStore } from '@posthorn/platform/mongo/companies/links/links.ts';
import type { Authenticate } from '../../../api-keys/authenticate.ts';
import type { RecordRequest } from '../../audit/record-request.ts';
import { ApiError } from '../../../http/api-error.ts';
import type { WrongKeys } from '../../../limits/rate-limits.ts';
import { linkRefused } from './link-refused.ts';
import { SESSION_MS, type Session } from './session.ts';

export interface SignInDeps {
  authenticate: Authenticate;
  links: Pick<LinkStore, 'find' | 'use'>;
  companies: Pick<CompanyStore, 'insertKey'>;
  recordRequest: RecordRequest;
  wrongKeys: WrongKeys;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

/** Where a sign-in comes from, for limits and the audit log. */
export interface SignInSource {
  address: string | undefined;
  requestId: string;
}

export interface SignedIn {
  session: Session;
  key: KeyRecord;
}

export interface SignIn {
  /** Throws ApiError 401 for a wrong key, and what `Authenticate` throws besides. */
  byKey: (
    credentials: { apiKey: string; companyId: string | undefined },
    source: SignInSource,
  ) => Promise<SignedIn>;
  /** Throws ApiError 404 or 410 for a link that does not open, 429 after too many. */
  byLink: (token: string, source: SignInSource) => Promise<SignedIn>;
}

export function createSignIn(deps: SignInDeps): SignIn {
  const { authenticate, links, wrongKeys, nowMs } = deps;

  function begin(keyHash: string, key: KeyRecord): SignedIn {
    const endsAtMs = Math.min(nowMs() + SESSION_MS, key.expiresAtMs ?? Infinity);
    const { companyId } = key;
    return { session: { kind: 'company', companyId, keyHash, endsAtMs }, key };
  }

  return {
    async byKey(credentials, { address }) {
      const key = await authenticate({ ...credentials, address }).catch(asWrongKey);
      return begin(hashOfKey(credentials.apiKey), key);
    },
    async byLink(token, source) {
      const found = await links.find('signIn', token, nowMs());
      if ('refusal' in found) {
        wrongKeys.count(source.address);
        throw linkRefused(found.refusal);
      }
      const keyHash = await makeSessionKey(deps, { token, ...found.link }, source);
      return begin(keyHash, await authenticate({ keyHash, address: source.address }));
    },
  };
}

/** `authenticate` tells clients of the API where to send a key. */
function asWrongKey(error: unknown): never {
  if (!(error instanceof ApiError) || error.status !== 401) throw error;
  throw new ApiError(401, 'unauthorized', 'This is not a valid API key.');
}

const SIGNED_IN = {
  method: 'post',
  audit: { action: 'dashboard.signed_in', target: 'apiKey' },
} as const;

/**
 * Uses the link up, and makes the API key of its session, which nobody knows. So the session is listed and revoked
 * as a key, the audit log names who did what, and the key goes by itself. Returns the hash of the key.
 */
async function makeSessionKey(
  deps: SignInDeps,
  { token, companyId }: Link & { token: string },
  { address, requestId }: SignInSource,
): Promise<string> {
  const { links, companies, nowMs } = deps;
  const expiresAt = new Date(nowMs() + SESSION_MS);
  const { document } = makeApiKey(deps, companyId, 'Sign-in by link', { expiresAt });
  const { _id: keyId } = document;
  const asked = {
    caller: { companyId, keyId, scopes: ALL_SCOPES, appId: null },
    requestId,
    clientAddress: address ?? null,
    params: { keyId },
    fields: { expiresAt },
  };
  await deps.recordRequest(SIGNED_IN, asked, async () => {
    const used = await links.use('signIn', token, nowMs());
    if ('refusal' in used) throw linkRefused(used.refusal);
    await companies.insertKey({ ...document, removeAt: expiresAt });
    return {};
  });
  return document.hash;
}
