import { scopesToGive, type Capability } from '@posthorn/domain/access/capabilities.ts';
import type { PortalTheme } from '@posthorn/domain/access/portal.ts';
import { SCOPES, type Scope } from '@posthorn/domain/access/scopes.ts';
import type { CompanyStore, KeyRecord } from '@posthorn/platform/mongo/companies/companies.ts';
import type { LinkStore } from '@posthorn/platform/mongo/companies/links/links.ts';
import { sessionEnded } from '../../../api-keys/authenticate.ts';
import { isoTime } from '../../../http/responses/fields.ts';
import type { PortalSession, Session } from './session.ts';

/** What the dashboard is told of its session. */
export interface ShownSession {
  kind: Session['kind'];
  company: { id: string; name: string };
  /** Of a visitor of the portal: the link that was opened. */
  key: { id: string; scopes: Scope[]; appId: string | null };
  expiresAt: string;
  portal: ShownPortal | null;
}

interface ShownPortal {
  app: { id: string; name: string };
  capabilities: Capability[];
  theme: PortalTheme;
}

export interface DescribeSessionDeps {
  companies: Pick<CompanyStore, 'nameOf'>;
  links: Pick<LinkStore, 'themeOf'>;
  /** Null for an unknown app. */
  appName: (companyId: string, appId: string) => Promise<string | null>;
}

/** Throws ApiError 401 when the app of the portal was deleted. */
export async function describeSession(
  deps: DescribeSessionDeps,
  session: Session,
  key: KeyRecord,
): Promise<ShownSession> {
  const { kind, companyId, endsAtMs } = session;
  return {
    kind,
    company: { id: companyId, name: (await deps.companies.nameOf(companyId)) ?? '' },
    key: kind === 'company' ? describeKey(key) : describeVisitor(session),
    expiresAt: isoTime(Math.min(endsAtMs, key.expiresAtMs ?? Infinity)),
    portal: kind === 'company' ? null : await describePortal(deps, session),
  };
}

function describeKey({ keyId, scopes, appId }: KeyRecord): ShownSession['key'] {
  return { id: keyId, scopes: scopes.includes('admin') ? [...SCOPES] : [...scopes], appId };
}

/** The scopes are what the dashboard may offer; what is allowed is decided by the capabilities. */
function describeVisitor({ linkId, appId, capabilities }: PortalSession): ShownSession['key'] {
  const offered = capabilities.filter((capability) => capability !== 'secrets');
  return { id: linkId, scopes: scopesToGive(offered), appId };
}

async function describePortal(
  { appName, links }: DescribeSessionDeps,
  { companyId, appId, tokenHash, capabilities }: PortalSession,
): Promise<ShownPortal> {
  const name = await appName(companyId, appId);
  if (name === null) throw sessionEnded();
  const theme = (await links.themeOf(tokenHash)) ?? {};
  return { app: { id: appId, name }, capabilities, theme };
}
