import { type EgressPolicy, STRICT_EGRESS } from '@posthorn/domain/egress.ts';
import type { Gateway } from '../../../services/gateway/src/gateway.ts';
import type { Route } from '../../../services/gateway/src/http/route.ts';
import { apiRoutes } from '../../../services/gateway/src/routes/all.ts';

/** Returns the routes without stores, for tests of the table itself. */
export function routeTable(policy: EgressPolicy = STRICT_EGRESS): Route[] {
  // A handler uses the gateway only when it is called, and no test of the table calls one.
  return apiRoutes({ policy } as unknown as Gateway);
}
