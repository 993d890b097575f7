import { STRICT_EGRESS } from '@posthorn/domain/egress.ts';
import type { Route } from '../../../services/gateway/src/http/route.ts';
import { apiRoutes, type ApiDeps } from '../../../services/gateway/src/routes/all.ts';

/** Returns the routes without stores, for tests of the table itself. */
export function routeTable(): Route[] {
  // Handlers use their stores only when they are called, and these never are.
  return apiRoutes({ policy: STRICT_EGRESS } as unknown as ApiDeps);
}
