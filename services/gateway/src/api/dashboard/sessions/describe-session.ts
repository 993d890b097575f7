import { SCOPES, type Scope } from '@posthorn/domain/access/scopes.ts';
import type { KeyRecord } from '@posthorn/platform/mongo/companies/companies.ts';
import { isoTime } from '../../../http/responses/fields.ts';
import type { Session } from './session.ts';

/** What the dashboard is told of its session. */
export interface ShownSession {
  kind: Session['kind'];
  company: { id: string; name: string };
  key: { id: string; scopes: Scope[]; appId: string | null };
  expiresAt: string;
  portal: null;
}

export function describeSession(
  { kind, companyId, endsAtMs }: Session,
  { keyId, scopes, appId, expiresAtMs }: KeyRecord,
  companyName: string,
): ShownSession {
  return {
    kind,
    company: { id: companyId, name: companyName },
    key: { id: keyId, scopes: scopes.includes('admin') ? [...SCOPES] : [...scopes], appId },
    expiresAt: isoTime(Math.min(endsAtMs, expiresAtMs ?? Infinity)),
    portal: null,
  };
}
