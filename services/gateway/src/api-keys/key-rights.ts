import { ALL_SCOPES, notGrantable, type Scope } from '@posthorn/domain/access/scopes.ts';
import {
  toKeyRights,
  type AskedRights,
  type KeyRights,
} from '@posthorn/platform/mongo/companies/make-api-key.ts';
import type { ApiKeyDocument } from '@posthorn/platform/mongo/documents/documents.ts';
import { cannotGive } from '../http/api-error.ts';
import type { Caller } from '../http/request/route.ts';

/** Whose request makes a key. */
export type Maker = Pick<Caller, 'companyId' | 'scopes' | 'appId'>;

/** Returns the rights of a new key. Throws ApiError 403 for a scope that its maker does not have. */
export function rightsFor(maker: Maker, { scopes, appId, expiresAtMs }: AskedRights): KeyRights {
  assertGrantable(maker, scopes ?? ALL_SCOPES);
  // A key of one app makes keys of this app only.
  return toKeyRights({ scopes, appId: maker.appId ?? appId, expiresAtMs });
}

/** Returns the rights of a key that takes the place of another one. Throws as `rightsFor` does. */
export function rightsLike(
  maker: Maker,
  { scopes, appId, expiresAt }: Pick<ApiKeyDocument, 'scopes' | 'appId' | 'expiresAt'>,
): KeyRights {
  return rightsFor(maker, { scopes, appId, expiresAtMs: expiresAt?.getTime() });
}

function assertGrantable({ scopes }: Maker, asked: readonly Scope[]): void {
  const [first] = notGrantable(scopes, asked);
  if (first === undefined) return;
  throw cannotGive(first);
}
