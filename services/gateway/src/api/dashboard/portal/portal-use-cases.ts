import { createCompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import type { LinkStore } from '@posthorn/platform/mongo/companies/links/links.ts';
import type { mongo } from 'mongoose';
import {
  createCreatePortalLink,
  type CreatePortalLink,
  type CreatePortalLinkDeps,
} from './create-portal-link.ts';
import {
  createEndPortalLink,
  type EndPortalLink,
  type EndPortalLinkDeps,
} from './end-portal-link.ts';
import {
  createListPortalLinks,
  type ListPortalLinks,
  type ListPortalLinksDeps,
} from './list-portal-links.ts';
import type { PortalSettingsStore } from './portal-settings.ts';

/** What the routes of the portal call. */
export interface PortalUseCases {
  createPortalLink: CreatePortalLink;
  listPortalLinks: ListPortalLinks;
  endPortalLink: EndPortalLink;
  portalSettings: PortalSettingsStore;
}

export type PortalUseCaseDeps = Pick<PortalUseCases, 'portalSettings'> &
  Pick<EndPortalLinkDeps, 'invalidate'> &
  Pick<CreatePortalLinkDeps, 'quotas' | 'publicUrl' | 'newId' | 'nowMs'> & {
    db: mongo.Db;
    links: Pick<LinkStore, 'insert' | 'countLive' | 'revoke' | 'listLive'>;
  };

type Neighbours = Pick<CreatePortalLinkDeps, 'apps' | 'apiKeys'> &
  Pick<ListPortalLinksDeps, 'apps' | 'apiKeys'>;

export function portalUseCases(
  deps: PortalUseCaseDeps,
  { apps, apiKeys }: Neighbours,
): PortalUseCases {
  const companies = createCompanyStore(deps.db);
  return {
    createPortalLink: createCreatePortalLink({ ...deps, apps, apiKeys, companies }),
    listPortalLinks: createListPortalLinks({ ...deps, apps, apiKeys }),
    endPortalLink: createEndPortalLink({ ...deps, companies }),
    portalSettings: deps.portalSettings,
  };
}
