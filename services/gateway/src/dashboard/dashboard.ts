import {
  type CompanyStore,
  createCompanyStore,
} from '@posthorn/platform/mongo/companies/companies.ts';
import type { LinkStore } from '@posthorn/platform/mongo/companies/links.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { createSignedStatements } from '@posthorn/platform/security/signed-statements.ts';
import { Router } from 'express';
import type { mongo } from 'mongoose';
import { join } from 'node:path';
import type { GatewayConfig } from '../config.ts';
import type { RecordRequest } from '../http/audit-requests.ts';
import type { Identify } from '../http/pipeline.ts';
import type { KnownPage } from '../http/known-routes.ts';
import type { RequestDeadlines } from '../http/request-deadlines.ts';
import type { RequestMemory } from '../http/request-memory.ts';
import type { Authenticate } from '../keys/authenticate.ts';
import type { RateLimits, WrongKeys } from '../limits/rate-limits.ts';
import { createHasApp } from '../projects/apps.ts';
import type { GatewayRedis, Invalidations } from '../start.ts';
import { LIVE_PATH, livePage, openLive } from './live.ts';
import { DASHBOARD_PATHS, filePages, loadFiles } from './pages.ts';
import { createEndPortalLink } from '../keys/portal-links.ts';
import type { PortalSettingsStore } from '../keys/portal-settings.ts';
import { PORTAL_SESSION_PATH, SESSION_PATH, sessionPages } from './session-pages.ts';
import {
  createIdentify,
  createSessionCookies,
  createVisits,
  describeSession,
  type SessionCookies,
  type Visits,
} from './sessions.ts';
import { createSignIn, createSignOut, type SignOut } from './sign-in.ts';

/** What the gateway serves for people, besides the API. */
export interface Dashboard {
  router: Router;
  pages: readonly KnownPage[];
}

interface DashboardDeps {
  db: mongo.Db;
  authenticate: Authenticate;
  invalidations: Pick<Invalidations, 'invalidate' | 'addCache'>;
  wrongKeys: WrongKeys;
  recordRequest: RecordRequest;
  deadlines: RequestDeadlines;
  links: LinkStore;
  portalSettings: Pick<PortalSettingsStore, 'readCached'>;
  redis: Pick<GatewayRedis, 'live' | 'onNews'>;
  limits: Pick<RateLimits, 'limitCompany'>;
  signIns: Pick<RequestMemory, 'tryReserve'>;
  unknownCallers: Pick<RequestMemory, 'countWhile'>;
}

/** Names the use of the key that signs cookies (RFC 5869, `info`). */
const KEY_USE = 'posthorn sessions v1';
const BUILT = join(import.meta.dirname, '../../../../apps/dashboard/dist');

const PAGES: readonly KnownPage[] = [
  ...[SESSION_PATH, PORTAL_SESSION_PATH].map((path) => {
    return { path, methods: ['GET', 'POST', 'DELETE'] };
  }),
  ...DASHBOARD_PATHS.map((path) => ({ path, methods: ['GET'] })),
  { path: LIVE_PATH, methods: ['GET'], isStream: true },
];

/** Opens the pages of the dashboard and of the portal, and their sessions. */
export function openDashboard(
  context: ServiceContext<GatewayConfig>,
  deps: DashboardDeps,
): { dashboard: Dashboard; identify: Identify } {
  const { config } = context;
  const { authenticate, deadlines, limits, unknownCallers, portalSettings } = deps;
  const cookies = createSessionCookies({
    statements: createSignedStatements(config.ENCRYPTION_KEYS, KEY_USE),
    publicUrl: config.PUBLIC_URL,
    nowMs: systemClockMs,
  });
  const visits = openVisits(deps);
  const identify = createIdentify({ authenticate, cookies, visits });
  const streams = openLive(context, deps.redis);
  const router = Router({ caseSensitive: true, strict: true });
  router.use(livePage({ identify, limits, streams, unknownCallers, deadlines }));
  router.use(openSessionPages(deps, cookies, visits));
  router.use(
    filePages({
      load: () => loadFiles(BUILT),
      originsOf: async (companyId) => (await portalSettings.readCached(companyId)).origins,
      deadlines,
    }),
  );
  return { dashboard: { router, pages: PAGES }, identify };
}

/** The id of a visit in invalidations is that of its link. */
function openVisits({ db, links, invalidations }: DashboardDeps): Visits {
  const visits = createVisits({ links, hasApp: createHasApp(db) });
  invalidations.addCache({
    forget: ({ id }) => {
      visits.forget(id);
    },
  });
  return visits;
}

function openSessionPages(deps: DashboardDeps, cookies: SessionCookies, visits: Visits): Router {
  const { db, authenticate, links, limits, signIns, deadlines } = deps;
  const companies = createCompanyStore(db);
  const described = {
    companies,
    links,
    appName: async (companyId: string, _id: string) =>
      (await documentsOf(db, 'apps', companyId).findOne({ _id }))?.name ?? null,
  };
  return sessionPages({
    signIn: createSignIn({
      ...deps,
      companies,
      hasApp: createHasApp(db),
      newId: systemIds,
      nowMs: systemClockMs,
    }),
    authenticate,
    cookies,
    visits,
    describe: (session, key) => describeSession(described, session, key),
    signOut: openSignOut(deps, companies),
    limits,
    signIns,
    deadlines,
  });
}

function openSignOut(
  { invalidations: { invalidate }, links, recordRequest }: DashboardDeps,
  companies: CompanyStore,
): SignOut {
  const endPortalLink = createEndPortalLink({ links, companies, invalidate, nowMs: systemClockMs });
  return createSignOut({ companies, endPortalLink, invalidate, recordRequest });
}
