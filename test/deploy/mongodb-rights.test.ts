import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import {
  DATABASE_USERS,
  DAY_RIGHTS,
  databaseRoleOf,
  privilegesOf,
  RIGHTS,
  rolesScript,
  type Privilege,
} from '../../deploy/setup/mongodb-rights.ts';

test('only the gateway can delete messages, and the dispatcher changes only what it settles and counts', () => {
  const removing = Object.entries(DAY_RIGHTS.messages).filter(([, actions]) =>
    actions.includes('remove'),
  );
  expect(removing.map(([user]) => user)).toEqual(['gateway']);
  const changes = privilegesOf('dispatcher', 'posthorn').filter(({ actions }) =>
    actions.some((action) => action !== 'find'),
  );
  expect(changes.map(({ resource }) => resource.collection)).toEqual([
    'erasures',
    'stats',
    'usage',
    ...['', ''],
  ]);
});

test('only the retry service drops collections, and none but those of days [security]', () => {
  const dropped = DATABASE_USERS.flatMap((user) =>
    privilegesOf(user, 'hooks')
      .filter(({ actions }) => actions.includes('dropCollection'))
      .map(({ resource }) => [user, resource.db]),
  );
  expect(dropped).toEqual([
    ['retry', 'hooks_messages'],
    ['retry', 'hooks_deliveries'],
  ]);
});

test('keys of the API are read by the gateway and the administration only [security]', () => {
  expect(Object.keys(RIGHTS.apiKeys).sort()).toEqual(['admin', 'gateway']);
});

interface Role {
  role: string;
  privileges: Privilege[];
}

/** Runs the program for mongosh on a server that has these roles already; returns what it makes and changes. */
function run(program: string, existing: readonly string[]): { made: Role[]; changed: Role[] } {
  const [made, changed]: [Role[], Role[]] = [[], []];
  const admin = {
    getRole: (role: string) => (existing.includes(role) ? { role } : null),
    createRole: (role: Role) => void made.push(role),
    updateRole: (role: string, rights: Omit<Role, 'role'>) =>
      void changed.push({ role, ...rights }),
  };
  runInNewContext(program, { db: { getSiblingDB: () => admin } });
  return { made, changed };
}

const ROLES = DATABASE_USERS.map(databaseRoleOf);

test('the program for mongosh creates a role of one database for each process', () => {
  const { made, changed } = run(rolesScript('hooks'), []);
  expect([made.map(({ role }) => role), changed]).toEqual([ROLES, []]);
  const databases = made.flatMap(({ privileges }) => privileges.map(({ resource }) => resource.db));
  expect(new Set(databases)).toEqual(new Set(['hooks', 'hooks_messages', 'hooks_deliveries']));
});

test('the program for mongosh brings the roles of an earlier version up to date', () => {
  const { made, changed } = run(rolesScript('hooks'), ROLES.slice(1));
  expect(made.map(({ role }) => role)).toEqual(ROLES.slice(0, 1));
  expect(changed.map(({ role }) => role)).toEqual(ROLES.slice(1));
  expect(changed.at(-1)?.privileges).toEqual(privilegesOf('setup', 'hooks'));
});
