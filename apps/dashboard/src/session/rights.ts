import type { Capability, Role, Scope, Session } from '../api/session.ts';

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
  /** Invite, change and remove people, and give roles to groups. */
  canManagePeople: boolean;
}

/** Returns the rights of a session, from its role, the scopes of its key or the capabilities of its portal link. */
export function rightsOf({ kind, key, portal, person }: Session): Rights {
  if (kind === 'portal') return portalRights(portal?.capabilities ?? []);
  const has = (scope: Scope): boolean => key.scopes.includes(scope) || key.scopes.includes('admin');
  const isOfCompany = key.appId === null;
  return {
    canManageWebhooks: has('webhooks:write'),
    canSeeSecrets: has('webhooks:write'),
    canResend: has('messages:write'),
    canControl: has('messages:write'),
    // The role may hold, and the scope that holds would show secrets (docs/contract.md C24).
    canHold: has('webhooks:write') || person?.role === 'support',
    canErase: has('messages:write'),
    canTest: has('messages:write'),
    canSend: has('messages:write'),
    canManageKeys: has('keys:write'),
    canManageProjects: has('webhooks:write') && isOfCompany,
    canReadAudit: has('admin'),
    canMakePortalLinks: has('webhooks:write'),
    canManagePeople: has('admin') && isOfCompany,
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
    canManagePeople: false,
  };
}

interface PageRule {
  isInPortal: boolean;
  /** Without one, the gateway alone decides: it answers or refuses what the page reads. */
  needs?: Need;
  /** Only where people sign in at an issuer. */
  isOfIssuer?: boolean;
}

/** A right, and how one gets it: by a role, as a scope of an API key, or as a capability of a link to the portal. */
interface Need {
  right: keyof Rights;
  role: Role;
  scope: Scope;
  capability?: Capability;
}

const EVERYWHERE: PageRule = { isInPortal: true };
const DASHBOARD_ONLY: PageRule = { isInPortal: false };

/** Every page by its address, and who may see it. The frame shows no page that is not here. */
const PAGES = {
  '/': DASHBOARD_ONLY,
  '/sign-in': EVERYWHERE,
  '/invitation': DASHBOARD_ONLY,
  '/start': DASHBOARD_ONLY,
  '/projects': DASHBOARD_ONLY,
  '/projects/$projectId': DASHBOARD_ONLY,
  '/apps/$appId': DASHBOARD_ONLY,
  '/event-types': EVERYWHERE,
  '/webhooks': EVERYWHERE,
  '/webhooks/new': {
    isInPortal: true,
    needs: {
      right: 'canManageWebhooks',
      role: 'admin',
      scope: 'webhooks:write',
      capability: 'manage',
    },
  },
  '/webhooks/$webhookId': EVERYWHERE,
  '/messages': EVERYWHERE,
  '/messages/new': {
    isInPortal: false,
    needs: { right: 'canSend', role: 'support', scope: 'messages:write' },
  },
  '/messages/$messageId': EVERYWHERE,
  '/deliveries': EVERYWHERE,
  '/failures': DASHBOARD_ONLY,
  '/circuits': DASHBOARD_ONLY,
  '/resends': EVERYWHERE,
  '/resends/$resendId': EVERYWHERE,
  '/api-keys': DASHBOARD_ONLY,
  '/audit': { isInPortal: false, needs: { right: 'canReadAudit', role: 'admin', scope: 'admin' } },
  '/people': {
    isInPortal: false,
    isOfIssuer: true,
    needs: { right: 'canManagePeople', role: 'admin', scope: 'admin' },
  },
} satisfies Record<string, PageRule>;

export type PagePath = keyof typeof PAGES;

/** `missing`: there is no such page for this session. `denied`: there is, and `why` says what is missing. */
export type Access = { kind: 'allowed' } | { kind: 'missing' } | { kind: 'denied'; why: string };

/** Returns whether a session may see a page; `hasIssuer`: people sign in at an issuer here. */
export function accessTo(page: PagePath, session: Session, hasIssuer: boolean): Access {
  const { isInPortal, isOfIssuer = false, needs }: PageRule = PAGES[page];
  const isMissing = (session.kind === 'portal' && !isInPortal) || (isOfIssuer && !hasIssuer);
  if (isMissing) return { kind: 'missing' };
  if (needs === undefined || rightsOf(session)[needs.right]) return { kind: 'allowed' };
  return { kind: 'denied', why: whyDenied(session, needs) };
}

function whyDenied({ kind, person }: Session, { role, scope, capability = 'view' }: Need): string {
  if (kind === 'portal') return `Your link to the portal does not include “${capability}”.`;
  if (person === null) return `This API key does not have the scope ${scope}.`;
  return `Your role is ${person.role}, and this page is for the role ${role}${aboveOf(role)}.`;
}

const aboveOf = (role: Role): string => (role === 'admin' ? '' : ' or admin');
