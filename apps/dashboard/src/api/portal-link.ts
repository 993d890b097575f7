import { api, dataOf } from './client.ts';
import type { Capability } from './session.ts';

interface PortalLinkWish {
  expiresInSeconds: number;
  capabilities: Capability[];
}

/** Makes a single-use link to the portal of an app. */
export function makePortalLink(
  appId: string,
  body: PortalLinkWish,
): Promise<{ url: string; expiresAt: string }> {
  return dataOf(
    api.POST(
      '/api/v1/apps/{appId}/portal-links' as never,
      { params: { path: { appId } }, body } as never,
    ) as never,
  );
}
