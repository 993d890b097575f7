import { join } from 'node:path';
import { createCompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import { createLinkStore } from '@posthorn/platform/mongo/companies/links/links.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { createSignedStatements } from '@posthorn/platform/vault/signed-statements.ts';
import { Router } from 'express';
import type { mongo } from 'mongoose';
import type { Authenticate } from '../../api-keys/authenticate.ts';
import type { RecordRequest } from '../audit/record-request.ts';
import type { GatewayConfig } from '../../config.ts';
import type { KnownPage } from '../../http/known-routes.ts';
import type { RequestDeadlines } from '../../http/request-deadlines.ts';
import type { WrongKeys } from '../../limits/rate-limits.ts';
import type { Invalidations } from '../../open-redis.ts';
import { DASHBOARD_PATHS, filePages } from './files/file-pages.ts';
import { loadFiles } from './files/load-files.ts';
import { createIdentify, type Identify } from './sessions/identify.ts';
import { createSessionCookies } from './sessions/session-cookies.ts';
import { SESSION_PATH, sessionPages } from './sessions/session-pages.ts';
import { createSignIn } from './sessions/sign-in.ts';

/** What the gateway serves for people, besides the API. */
export interface Dashboard {
  router: Router;
  pages: readonly KnownPage[];
}

interface DashboardDeps {
  db: mongo.Db;
  authenticate: Authenticate;
  invalidations: Pick<Invalidations, 'invalidate'>;
  wrongKeys: WrongKeys;
  recordRequest: RecordRequest;
  deadlines: RequestDeadlines;
}

/** Names the use of the key that signs cookies (RFC 5869, `info`). */
const KEY_USE = 'posthorn sessions v1';

const BUILT = join(import.meta.dirname, '../../../../../apps/dashboard/dist');

const PAGES: readonly KnownPage[] = [
  { path: SESSION_PATH, methods: ['GET', 'POST', 'DELETE'] },
  ...DASHBOARD_PATHS.map((path) => ({ path, methods: ['GET'] })),
];

/** Opens the pages of the dashboard, and its sessions. */
export function openDashboard(
  { config }: ServiceContext<GatewayConfig>,
  deps: DashboardDeps,
): { dashboard: Dashboard; identify: Identify } {
  const { authenticate, invalidations, deadlines } = deps;
  const companies = createCompanyStore(deps.db);
  const cookies = createSessionCookies({
    statements: createSignedStatements(config.ENCRYPTION_KEYS, KEY_USE),
    publicUrl: config.PUBLIC_URL,
    nowMs: systemClockMs,
  });
  const signIn = createSignIn({
    ...deps,
    links: createLinkStore(deps.db),
    companies,
    newId: systemIds,
    nowMs: systemClockMs,
  });
  const router = Router({ caseSensitive: true, strict: true });
  const sessions = sessionPages({
    signIn,
    authenticate,
    cookies,
    companies,
    async endSession({ companyId, keyHash }) {
      if (await companies.removeLinkKey(keyHash)) {
        await invalidations.invalidate({ companyId, id: keyHash });
      }
    },
    deadlines,
  });
  router.use(sessions, filePages({ load: () => loadFiles(BUILT) }));
  return {
    dashboard: { router, pages: PAGES },
    identify: createIdentify({ authenticate, cookies }),
  };
}
