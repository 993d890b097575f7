import { allows, type Scope } from '@posthorn/domain/access/scopes.ts';
import type { Caller } from '../http/request/route.ts';

/** Whether responses show the caller the secrets of webhooks (docs/contract.md C14.5, C20.3). */
export function seesSecrets(
  { scopes, portal }: Pick<Caller, 'scopes' | 'portal'>,
  scope: Scope = 'webhooks:write',
): boolean {
  return portal ? portal.capabilities.includes('secrets') : allows(scopes, scope);
}
