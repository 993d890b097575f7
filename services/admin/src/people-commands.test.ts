import { describe, expect, it } from '@jest/globals';
import type { GroupRole } from '@posthorn/domain/people.ts';
import type { SessionKey } from '@posthorn/platform/mongo/companies/people.ts';
import { parseGroup, setGroups } from './people-commands.ts';

describe('--group', () => {
  it('reads a group with its role, and adds it to the earlier ones', () => {
    const one = parseGroup('platform=admin');
    expect(parseGroup('a=b=viewer', one)).toEqual([
      { group: 'platform', role: 'admin' },
      { group: 'a=b', role: 'viewer' },
    ]);
  });

  it.each(['platform', '=admin', 'platform=', 'platform=owner', `${'x'.repeat(257)}=admin`])(
    'refuses %j',
    (text) => {
      expect(() => parseGroup(text)).toThrow('--group must be a group');
    },
  );

  it('may be given a hundred times', () => {
    const many = Array.from({ length: 100 }, (_, n) => `g${n}=viewer`);
    const groups = many.reduce<GroupRole[]>((earlier, text) => parseGroup(text, earlier), []);
    expect(() => parseGroup('one=admin', groups)).toThrow('100 groups at most');
  });
});

describe('company groups', () => {
  const session = { _id: 'key_1' } as SessionKey;
  const setUp = () => {
    const removed: string[] = [];
    let mapping: readonly GroupRole[] = [{ group: 'all', role: 'viewer' }];
    const deps = {
      companies: { hasCompany: (id: string) => Promise.resolve(id === 'comp_a') },
      people: {
        readMapping: () => Promise.resolve([...mapping]),
        writeMapping: (_id: string, groups: readonly GroupRole[]) =>
          Promise.resolve(void (mapping = groups)),
        async *sessionsChangedBy() {
          yield await Promise.resolve([session]);
        },
        removeSessions: (_id: string, ids: readonly string[]) =>
          Promise.resolve(removed.push(...ids)),
      },
      record: <Result>(_action: object, make: () => Promise<Result>) => make(),
      nowMs: () => 0,
    };
    return { deps, removed };
  };

  it('replaces the roles of groups, and ends the sessions whose role changes', async () => {
    const { deps, removed } = setUp();
    const groups = [{ group: 'ops', role: 'admin' as const }];
    expect(await setGroups(deps, 'comp_a', groups)).toEqual({
      companyId: 'comp_a',
      groups: ['ops=admin'],
    });
    expect(removed).toEqual(['key_1']);
    expect(await setGroups(deps, 'comp_a', undefined)).toMatchObject({ groups: ['ops=admin'] });
  });

  it('changes nothing without a group, and refuses an unknown company', async () => {
    const { deps, removed } = setUp();
    expect(await setGroups(deps, 'comp_a', undefined)).toMatchObject({ groups: ['all=viewer'] });
    expect(removed).toEqual([]);
    await expect(setGroups(deps, 'comp_b', undefined)).rejects.toThrow('no company comp_b');
  });
});
