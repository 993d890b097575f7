import { Router } from 'express';
import { join } from 'node:path';
import type { KnownPage } from '../http/known-routes.ts';
import type { PortalSettingsStore } from '../keys/portal-settings.ts';
import { LIVE_PAGE, livePage, type LivePageDeps } from './live.ts';
import { DASHBOARD_PAGES, filePages, loadFiles } from './pages.ts';
import { OIDC_PAGES, oidcPages, type OidcPagesDeps } from './oidc-pages.ts';
import {
  createReceive,
  SESSION_PAGES,
  sessionPages,
  type SessionPagesDeps,
} from './session-pages.ts';
import { createSignIn, type SignInDeps } from './sign-in.ts';

type DashboardDeps = Omit<SignInDeps, 'areKeysOff'> &
  LivePageDeps &
  Omit<SessionPagesDeps, 'signIn'> &
  Omit<OidcPagesDeps, 'signIn' | 'receive'> & {
    portalSettings: Pick<PortalSettingsStore, 'readCached'>;
  };

/** The pages that the gateway serves for people, besides the API. */
interface Dashboard {
  router: Router;
  pages: readonly KnownPage[];
}

const BUILT = join(import.meta.dirname, '../../../../apps/dashboard/dist');

/** Creates the pages of the dashboard and of the portal. */
export function createDashboard(deps: DashboardDeps): Dashboard {
  const { portalSettings, deadlines } = deps;
  const router = Router({ caseSensitive: true, strict: true });
  router.use(livePage(deps));
  const areKeysOff = deps.oidc?.config.isOnly === true;
  const signIn = createSignIn({ ...deps, areKeysOff });
  router.use(sessionPages({ ...deps, signIn }));
  router.use(oidcPages({ ...deps, signIn, receive: createReceive(deps) }));
  router.use(
    filePages({
      load: () => loadFiles(BUILT),
      originsOf: async (companyId) => (await portalSettings.readCached(companyId)).origins,
      deadlines,
    }),
  );
  return { router, pages: [...SESSION_PAGES, ...OIDC_PAGES, ...DASHBOARD_PAGES, LIVE_PAGE] };
}
