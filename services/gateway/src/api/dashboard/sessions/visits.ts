import { createCoalescingCache } from '@posthorn/platform/async/coalescing-cache.ts';
import type { LinkStore } from '@posthorn/platform/mongo/companies/links/links.ts';
import { sessionEnded } from '../../../api-keys/authenticate.ts';
import type { HasApp } from '../../../projects/has-app.ts';
import type { PortalSession, Session } from './session.ts';

/** Whether visits of the portal go on (docs/contract.md C20.1). Sessions of the dashboard go on with their key. */
export interface Visits {
  /** Throws ApiError 401 when the link of the visit was revoked, and when its app was deleted. */
  assertGoesOn: (session: Session) => Promise<void>;
  /** Drops the visit of this link from the cache. */
  forget: (linkId: string) => void;
}

export interface VisitsDeps {
  links: Pick<LinkStore, 'isRevoked'>;
  hasApp: HasApp;
}

/** As long as an API key that was revoked by another gateway may still work. */
const TTL_MS = 2_000;
const MAX_CACHED = 10_000;

export function createVisits({ links, hasApp }: VisitsDeps): Visits {
  const cache = createCoalescingCache<{ goesOn: boolean }>({
    maxSize: MAX_CACHED,
    sizeOf: () => 1,
    ttlMs: TTL_MS,
  });
  const load = async ({ companyId, appId, tokenHash }: PortalSession) => ({
    goesOn: !(await links.isRevoked(tokenHash)) && (await hasApp(companyId, appId)),
  });
  return {
    async assertGoesOn(session) {
      if (session.kind === 'company') return;
      const found = await cache.get(session.linkId, () => load(session));
      if (!found?.goesOn) throw sessionEnded();
    },
    forget: cache.forget,
  };
}
