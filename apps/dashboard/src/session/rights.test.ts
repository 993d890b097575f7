import { describe, expect, it } from '@jest/globals';
import type { Capability, Role, Scope, Session } from '../api/session.ts';
import { type Access, accessTo, type PagePath, rightsOf } from './rights.ts';

const NO_PERSON = { person: null, companies: null };

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
  ...NO_PERSON,
});

const SCOPES_OF: Record<Role, Scope[]> = {
  viewer: ['read'],
  support: ['read', 'messages:write'],
  admin: ['read', 'messages:write', 'webhooks:write', 'keys:write', 'admin'],
};

const sessionOf = (role: Role): Session => ({
  ...session(SCOPES_OF[role]),
  person: { id: 'usr_1', name: 'Ada', role },
  companies: [{ id: 'comp_1', name: 'Shop', role }],
});

describe('rightsOf', () => {
  it('offers a reader nothing that changes anything', () => {
    expect(Object.values(rightsOf(session(['read'])))).not.toContain(true);
  });

  it('offers an admin everything', () => {
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

describe('the rights of a role', () => {
  it.each([
    ['viewer', []],
    ['support', ['canControl', 'canErase', 'canHold', 'canResend', 'canSend', 'canTest']],
  ] as const)('are for %s: %j', (role, expected) => {
    const rights = Object.entries(rightsOf(sessionOf(role)));
    expect(rights.flatMap(([name, has]) => (has ? [name] : [])).sort()).toEqual(expected);
  });

  it('are all for an admin', () => {
    expect(Object.values(rightsOf(sessionOf('admin')))).not.toContain(false);
  });
});

const EXPIRES = { expiresAt: '2026-01-31T12:00:00.000Z' };
const company = { id: 'comp_1', name: 'Shop' };

function ofKey(page: PagePath, ...scopes: Scope[]): Access {
  const key = { id: 'key_1', scopes, appId: null };
  const rest = { portal: null, ...EXPIRES, ...NO_PERSON };
  return accessTo(page, { kind: 'company', company, key, ...rest }, true);
}

function ofVisitor(page: PagePath, ...capabilities: Capability[]): Access {
  const key = { id: 'plnk_1', scopes: ['admin' as const], appId: 'app_1' };
  const portal = { app: { id: 'app_1', name: 'A' }, capabilities, theme: {} };
  const rest = { portal, ...EXPIRES, ...NO_PERSON };
  return accessTo(page, { kind: 'portal', company, key, ...rest }, true);
}

const ALLOWED = { kind: 'allowed' };
const MISSING = { kind: 'missing' };

describe('a page', () => {
  it.each([
    ['/messages/new', 'messages:write'],
    ['/webhooks/new', 'webhooks:write'],
    ['/audit', 'admin'],
    ['/people', 'admin'],
  ] as const)('%s is for keys with the scope %s', (page, scope) => {
    const why = `This API key does not have the scope ${scope}.`;
    expect(ofKey(page, 'read')).toEqual({ kind: 'denied', why });
    expect(ofKey(page, 'read', scope)).toEqual(ALLOWED);
    expect(ofKey(page, 'admin')).toEqual(ALLOWED);
  });

  it.each([
    ['/messages/new', 'viewer', 'support or admin'],
    ['/webhooks/new', 'support', 'admin'],
    ['/audit', 'support', 'admin'],
    ['/people', 'support', 'admin'],
  ] as const)('%s is closed to the role %s', (page, role, needed) => {
    const why = `Your role is ${role}, and this page is for the role ${needed}.`;
    expect(accessTo(page, sessionOf(role), true)).toEqual({ kind: 'denied', why });
    expect(accessTo(page, sessionOf('admin'), true)).toEqual(ALLOWED);
  });

  it('of people is where they sign in at an issuer', () => {
    expect(accessTo('/people', session(['admin']), false)).toEqual(MISSING);
    expect(accessTo('/people', session(['admin']), true)).toEqual(ALLOWED);
  });

  it('that only shows something is for every key: the gateway decides', () => {
    for (const page of ['/', '/projects', '/api-keys', '/start'] as const) {
      expect(ofKey(page, 'read')).toEqual(ALLOWED);
    }
  });

  it.each([
    '/',
    '/start',
    '/projects',
    '/projects/$projectId',
    '/apps/$appId',
    '/messages/new',
    '/failures',
    '/circuits',
    '/api-keys',
    '/people',
    '/audit',
  ] as const)('%s does not exist in the portal', (page) => {
    expect(ofVisitor(page, 'view', 'manage', 'secrets', 'resend')).toEqual(MISSING);
  });

  it('that changes webhooks is in the portal for links that include it', () => {
    const why = 'Your link to the portal does not include “manage”.';
    expect(ofVisitor('/webhooks/new', 'view')).toEqual({ kind: 'denied', why });
    expect(ofVisitor('/webhooks/new', 'view', 'manage')).toEqual(ALLOWED);
    expect(ofVisitor('/webhooks', 'view')).toEqual(ALLOWED);
  });
});
