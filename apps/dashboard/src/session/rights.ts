import type { Capability, Scope, Session } from '../api/session.ts';

/** What this session may do. What it may not do is not offered; the gateway refuses it all the same. */
export interface Rights {
  canManageWebhooks: boolean;
  canSeeSecrets: boolean;
  canResend: boolean;
  /** Cancel deliveries, and replay messages. */
  canControl: boolean;
  /** Hold and resume deliveries. */
  canHold: boolean;
  canErase: boolean;
  canTest: boolean;
  canSend: boolean;
  canManageKeys: boolean;
  /** Projects and apps belong to the company, so a key of one app may not make them. */
  canManageProjects: boolean;
  canReadAudit: boolean;
  canMakePortalLinks: boolean;
}

/** Returns the rights of a session, from the scopes of its key or the capabilities of its portal link. */
export function rightsOf({ kind, key, portal }: Session): Rights {
  if (kind === 'portal') return portalRights(portal?.capabilities ?? []);
  const has = (scope: Scope): boolean => key.scopes.includes(scope) || key.scopes.includes('admin');
  const isOfCompany = key.appId === null;
  return {
    canManageWebhooks: has('webhooks:write'),
    canSeeSecrets: has('webhooks:write'),
    canResend: has('messages:write'),
    canControl: has('messages:write'),
    canHold: has('webhooks:write'),
    canErase: has('messages:write'),
    canTest: has('messages:write'),
    canSend: has('messages:write'),
    canManageKeys: has('keys:write'),
    canManageProjects: has('webhooks:write') && isOfCompany,
    canReadAudit: has('admin'),
    canMakePortalLinks: has('webhooks:write'),
  };
}

function portalRights(capabilities: readonly Capability[]): Rights {
  return {
    canManageWebhooks: capabilities.includes('manage'),
    canSeeSecrets: capabilities.includes('secrets'),
    canResend: capabilities.includes('resend'),
    canControl: capabilities.includes('controlDeliveries'),
    canHold: capabilities.includes('controlDeliveries'),
    canErase: false,
    canTest: capabilities.includes('manage'),
    canSend: false,
    canManageKeys: false,
    canManageProjects: false,
    canReadAudit: false,
    canMakePortalLinks: false,
  };
}
