import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { allows, SCOPES } from './access.ts';
import {
  includesRole,
  readGroups,
  readProfile,
  roleByGroup,
  roleOf,
  ROLES,
  scopesOfRole,
} from './people.ts';

const role = fc.constantFrom(...ROLES);
const group = fc.constantFrom('a', 'b', 'A', 'a ', '');
const mapping = fc.array(fc.record({ group, role }));

describe('roles', () => {
  it('include what lower ones may do', () => {
    for (const [index, higher] of ROLES.entries()) {
      for (const lower of ROLES.slice(0, index + 1)) {
        expect(includesRole(higher, lower)).toBe(true);
        const missing = SCOPES.filter(
          (scope) => allows(scopesOfRole(lower), scope) && !allows(scopesOfRole(higher), scope),
        );
        expect(missing).toEqual([]);
      }
    }
  });

  it('come from the highest of the groups that are named exactly', () => {
    fc.assert(
      fc.property(fc.array(group), mapping, (groups, mapped) => {
        const found = roleByGroup(groups, mapped);
        const own = mapped.filter((each) => groups.includes(each.group));
        expect(own.length > 0).toBe(found !== null);
        if (found) {
          expect(own.every((each) => includesRole(found, each.role))).toBe(true);
          expect(own.map((each) => each.role)).toContain(found);
        }
      }),
    );
  });

  it('are the higher one of group and invitation, and nothing without both', () => {
    const grant = fc.option(role, { nil: null });
    fc.assert(
      fc.property(grant, grant, (byGroup, byInvitation) => {
        const granted = roleOf({ byGroup, byInvitation });
        const both = [byGroup, byInvitation].filter((each) => each !== null);
        expect(granted === null).toBe(both.length === 0);
        if (!granted) return;
        expect(both.every((each) => includesRole(granted.role, each))).toBe(true);
        const { source } = granted;
        expect(source === 'group' ? byGroup : byInvitation).toBe(granted.role);
      }),
    );
  });
});

describe('readGroups', () => {
  const known = (...groups: string[]) => ({ kind: 'known', groups });

  it.each<[string, object, string, object]>([
    ['a list', { groups: ['a', 'b', 'a'] }, 'groups', known('a', 'b')],
    ['a text as one group', { groups: 'a' }, 'groups', known('a')],
    ['an empty list as no groups', { groups: [] }, 'groups', known()],
    ['a path', { realm_access: { roles: ['a'] } }, 'realm_access.roles', known('a')],
    ['a name with a dot before a path', { 'a.b': ['x'], a: { b: ['y'] } }, 'a.b', known('x')],
    ['only texts of a list', { groups: ['a', 1, null, {}, ''] }, 'groups', known('a')],
    ['nothing without the claim', { roles: ['a'] }, 'groups', { kind: 'absent' }],
    ['nothing from an object', { groups: { a: true } }, 'groups', { kind: 'absent' }],
    ['nothing from a prototype', {}, 'constructor.name', { kind: 'absent' }],
    ['a list elsewhere', { _claim_names: { groups: 's' } }, 'groups', { kind: 'incomplete' }],
    ['that there are some', { hasgroups: true }, 'groups', { kind: 'incomplete' }],
    ['another claim beside them', { hasgroups: true, roles: ['a'] }, 'roles', known('a')],
  ])('reads %s', (_what, claims, claim, expected) => {
    expect(readGroups(claims as Record<string, unknown>, claim)).toEqual(expected);
  });

  it('takes a list of more than 1,000 for one that is not complete', () => {
    const groups = Array.from({ length: 1_001 }, (_, index) => `g${index}`);
    expect(readGroups({ groups: groups.slice(1) }, 'groups').kind).toBe('known');
    expect(readGroups({ groups }, 'groups')).toEqual({ kind: 'incomplete' });
  });

  it('returns groups that the claims have, whatever they are', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), (claims, claim) => {
        const found = readGroups(claims, claim);
        const text = JSON.stringify(claims);
        if (found.kind !== 'known') return;
        expect(found.groups.filter((each) => !text.includes(JSON.stringify(each)))).toEqual([]);
      }),
    );
  });
});

describe('readProfile', () => {
  it('returns short texts without unseen characters, or null', () => {
    expect(readProfile({ name: ' Ada\u202e\n ', email: 7 })).toEqual({ name: 'Ada', email: null });
    expect(readProfile({ email: 'ada@example.com' })).toEqual({
      name: 'ada@example.com',
      email: 'ada@example.com',
    });
    expect(readProfile({ preferred_username: 'ada', name: '' }).name).toBe('ada');
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 1_000 }), (name) => {
        const shown = readProfile({ name }).name ?? 'a';
        expect(Array.from(shown).length).toBeGreaterThan(0);
        expect(Array.from(shown).length).toBeLessThanOrEqual(100);
        expect(shown).not.toMatch(/[\p{Cc}\p{Cf}]/u);
        expect(shown.isWellFormed()).toBe(true);
      }),
    );
  });
});
