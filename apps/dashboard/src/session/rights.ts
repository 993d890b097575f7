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

interface PageRule {
  isInPortal: boolean;
  /** Without one, the gateway alone decides: it answers or refuses what the page reads. */
  needs?: Need;
}

/** A right, and how one gets it: as a scope of an API key, or as a capability of a link to the portal. */
interface Need {
  right: keyof Rights;
  scope: Scope;
  capability?: Capability;
}

const EVERYWHERE: PageRule = { isInPortal: true };
const DASHBOARD_ONLY: PageRule = { isInPortal: false };

/** Every page by its address, and who may see it. The frame shows no page that is not here. */
const PAGES = {
  '/': DASHBOARD_ONLY,
  '/sign-in': EVERYWHERE,
  '/start': DASHBOARD_ONLY,
  '/projects': DASHBOARD_ONLY,
  '/projects/$projectId': DASHBOARD_ONLY,
  '/apps/$appId': DASHBOARD_ONLY,
  '/webhooks': EVERYWHERE,
  '/webhooks/new': {
    isInPortal: true,
    needs: { right: 'canManageWebhooks', scope: 'webhooks:write', capability: 'manage' },
  },
  '/webhooks/$webhookId': EVERYWHERE,
  '/messages': EVERYWHERE,
  '/messages/new': {
    isInPortal: false,
    needs: { right: 'canSend', scope: 'messages:write' },
  },
  '/messages/$messageId': EVERYWHERE,
  '/deliveries': EVERYWHERE,
  '/failures': DASHBOARD_ONLY,
  '/circuits': DASHBOARD_ONLY,
  '/resends': EVERYWHERE,
  '/resends/$resendId': EVERYWHERE,
  '/api-keys': DASHBOARD_ONLY,
  '/audit': { isInPortal: false, needs: { right: 'canReadAudit', scope: 'admin' } },
} satisfies Record<string, PageRule>;

export type PagePath = keyof typeof PAGES;

/** `missing`: there is no such page for this session. `denied`: there is, and `why` says what is missing. */
export type Access = { kind: 'allowed' } | { kind: 'missing' } | { kind: 'denied'; why: string };

/** Returns whether a session with these rights may see a page. */
export function accessTo(page: PagePath, kind: Session['kind'], rights: Rights): Access {
  const { isInPortal, needs }: PageRule = PAGES[page];
  if (kind === 'portal' && !isInPortal) return { kind: 'missing' };
  if (needs === undefined || rights[needs.right]) return { kind: 'allowed' };
  return { kind: 'denied', why: whyDenied(kind, needs) };
}

function whyDenied(kind: Session['kind'], { scope, capability = 'view' }: Need): string {
  return kind === 'portal'
    ? `Your link to the portal does not include “${capability}”.`
    : `This API key does not have the scope ${scope}.`;
}
