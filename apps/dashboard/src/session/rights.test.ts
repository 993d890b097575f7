import { describe, expect, it } from '@jest/globals';
import type { Capability, Scope, Session } from '../api/session.ts';
import { rightsOf } from './rights.ts';

const session = (
  scopes: Scope[],
  capabilities?: Capability[],
  appId: string | null = null,
): Session => ({
  kind: capabilities === undefined ? 'company' : 'portal',
  company: { id: 'comp_1', name: 'Shop' },
  key: { id: 'key_1', scopes, appId },
  expiresAt: '2026-01-31T12:00:00.000Z',
  portal:
    capabilities === undefined
      ? null
      : { app: { id: 'app_1', name: 'A' }, capabilities, theme: {} },
});

describe('rightsOf', () => {
  it('offers a reader nothing that changes anything', () => {
    expect(Object.values(rightsOf(session(['read'])))).not.toContain(true);
  });

  it('offers an administrator everything', () => {
    expect(Object.values(rightsOf(session(['admin'])))).not.toContain(false);
  });

  it('offers projects only to keys of the company', () => {
    const rights = rightsOf(session(['webhooks:write'], undefined, 'app_1'));
    expect(rights).toMatchObject({ canManageWebhooks: true, canManageProjects: false });
  });

  it('follows the capabilities in a portal, not the scopes', () => {
    const rights = rightsOf(session(['webhooks:write', 'read'], ['view', 'resend'], 'app_1'));
    expect(rights).toMatchObject({
      canResend: true,
      canHold: false,
      canManageWebhooks: false,
      canSeeSecrets: false,
      canSend: false,
    });
  });
});
