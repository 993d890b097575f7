import type { CompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import { newLinkToken, type LinkStore } from '@posthorn/platform/mongo/companies/links/links.ts';
import type { RecordAdmin } from '../audit/record-admin.ts';

export interface SignInLinkDeps {
  companies: Pick<CompanyStore, 'hasCompany'>;
  links: Pick<LinkStore, 'insert'>;
  record: RecordAdmin;
  nowMs: () => number;
}

const LINK_MS = 10 * 60_000;

/**
 * Makes a link that opens the dashboard of a company once. The token is behind a `#`, which browsers send to
 * nobody, so that it is in no log of a proxy. Throws for an unknown company.
 */
export async function createSignInLink(
  { companies, links, record, nowMs }: SignInLinkDeps,
  companyId: string,
  publicUrl: string,
): Promise<{ url: string; expiresAt: Date }> {
  if (!(await companies.hasCompany(companyId))) {
    throw new Error(`There is no company ${companyId}.`);
  }
  const token = newLinkToken();
  const createdAtMs = nowMs();
  const expiresAtMs = createdAtMs + LINK_MS;
  const expiresAt = new Date(expiresAtMs);
  const action = 'dashboard_link.created' as const;
  const target = { kind: 'company' as const, id: companyId };
  await record({ companyId, action, target, fields: { expiresAt } }, () =>
    links.insert(token, { companyId, expiresAtMs, portal: null }, createdAtMs),
  );
  return { url: `${publicUrl}/dashboard/sign-in#${token}`, expiresAt };
}
