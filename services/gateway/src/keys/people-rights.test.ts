import { expect, test } from '@jest/globals';
import { type Role, ROLES, scopesOfRole } from '@posthorn/domain/people.ts';
import { routeTable } from '../../../../test/support/api/route-table.ts';
import type { ApiError } from '../api-error.ts';
import { assertAllowed } from './rights.ts';

const allowedTo = (role: Role): string[] =>
  routeTable()
    .filter((route) => {
      const person = { id: 'usr_1', name: null, role };
      try {
        assertAllowed(route, { scopes: scopesOfRole(role), person });
        return true;
      } catch (error) {
        expect(error).toMatchObject({ code: 'insufficient_scope' } satisfies Partial<ApiError>);
        return false;
      }
    })
    .map(({ method, path }) => `${method} ${path}`);

test('a role that is enough where a scope is not opens the four routes of holds, and no other', () => {
  const byRole = routeTable().filter(({ people }) => people !== undefined);
  const holds = byRole.map(({ people, path }) => `${String(people)} ${path}`);
  expect(holds.sort()).toEqual([
    'support /apps/:appId/hold',
    'support /apps/:appId/resume',
    'support /webhooks/:webhookId/hold',
    'support /webhooks/:webhookId/resume',
  ]);
});

test('each role may use all routes of the one below it, and the highest one every route', () => {
  const all = ROLES.map(allowedTo);
  for (const [index, lower] of all.slice(0, -1).entries()) {
    const higher = all[index + 1] ?? [];
    expect(lower.filter((name) => !higher.includes(name))).toEqual([]);
    expect(lower.length).toBeLessThan(higher.length);
  }
  expect(all.at(-1)).toHaveLength(routeTable().length);
});
