import { createSignedStatements } from '@posthorn/platform/security/signed-statements.ts';
import { Router } from 'express';
import { join } from 'node:path';
import type { KnownPage } from '../http/known-routes.ts';
import type { Identify } from '../http/pipeline.ts';
import type { PortalSettingsStore } from '../keys/portal-settings.ts';
import { LIVE_PAGE, livePage, type LivePageDeps } from './live.ts';
import { DASHBOARD_PAGES, filePages, loadFiles } from './pages.ts';
import { SESSION_PAGES, sessionPages, type SessionPagesDeps } from './session-pages.ts';
import {
  createIdentify,
  createSessionCookies,
  createPortalSessions,
  describeSession,
  type DescribeSessionDeps,
  type SessionCookieDeps,
  type PortalSessionsDeps,
} from './sessions.ts';
import { createSignIn, type SignInDeps } from './sign-in.ts';

type MadeHere = 'statements' | 'identify' | 'cookies' | 'portalSessions' | 'signIn' | 'describe';
type Deps = SignInDeps &
  SessionCookieDeps &
  PortalSessionsDeps &
  DescribeSessionDeps &
  LivePageDeps &
  SessionPagesDeps;

interface DashboardDeps extends Omit<Deps, MadeHere> {
  encryptionKeys: Parameters<typeof createSignedStatements>[0];
  portalSettings: Pick<PortalSettingsStore, 'readCached'>;
}

/** The pages that the gateway serves for people, besides the API. */
interface Dashboard {
  router: Router;
  pages: readonly KnownPage[];
  /** Returns who makes a request, by its API key or by its session. */
  identify: Identify;
  /** Drops the portal session of this link from the cache. */
  forgetSession: (linkId: string) => void;
}

/** Names the use of the key that signs cookies (RFC 5869, `info`). */
const KEY_USE = 'posthorn sessions v1';
const BUILT = join(import.meta.dirname, '../../../../apps/dashboard/dist');

/** Creates the pages of the dashboard and of the portal, and their sessions. */
export function createDashboard(deps: DashboardDeps): Dashboard {
  const { portalSettings, deadlines } = deps;
  const statements = createSignedStatements(deps.encryptionKeys, KEY_USE);
  const cookies = createSessionCookies({ ...deps, statements });
  const portalSessions = createPortalSessions(deps);
  const identify = createIdentify({ ...deps, cookies, portalSessions });
  const describe: SessionPagesDeps['describe'] = (session, key) =>
    describeSession(deps, session, key);
  const router = Router({ caseSensitive: true, strict: true });
  router.use(livePage({ ...deps, identify }));
  router.use(
    sessionPages({ ...deps, cookies, portalSessions, signIn: createSignIn(deps), describe }),
  );
  router.use(
    filePages({
      load: () => loadFiles(BUILT),
      originsOf: async (companyId) => (await portalSettings.readCached(companyId)).origins,
      deadlines,
    }),
  );
  const pages = [...SESSION_PAGES, ...DASHBOARD_PAGES, LIVE_PAGE];
  return { router, pages, identify, forgetSession: portalSessions.forget };
}
