import { allows } from '@posthorn/domain/access/scopes.ts';
import { ApiError, insufficientScope } from '../http/api-error.ts';
import type { Caller, Route } from '../http/request/route.ts';

/**
 * Throws ApiError 403 when the caller may not use the route (docs/contract.md C14.4), and 404 when it does not exist
 * for visitors of the portal (C20.3).
 */
export function assertAllowed(
  { scope, portal: needed }: Pick<Route, 'scope' | 'portal'>,
  { scopes, portal }: Pick<Caller, 'scopes' | 'portal'>,
): void {
  if (portal) {
    if (!needed) throw new ApiError(404, 'route_not_found', 'The portal has no such address.');
    if (portal.capabilities.includes(needed)) return;
    throw insufficientScope('What the link to the portal allows does not include this.');
  }
  if (!allows(scopes, scope)) {
    throw insufficientScope(`This API key does not have the scope ${scope}.`);
  }
}
