import type { Capability, Scope, Session } from '../api/session.ts';
import type { Rights } from './rights.ts';

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
