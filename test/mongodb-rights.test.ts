import { expect, test } from '@jest/globals';
import {
  DATABASE_USERS,
  privilegesOf,
  RIGHTS,
  rolesScript,
  type Privilege,
} from '../deploy/setup/mongodb-rights.ts';

test('no process can delete messages, and the dispatcher changes deliveries only', () => {
  expect(Object.values(RIGHTS.messages).flat()).not.toContain('remove');
  const changes = privilegesOf('dispatcher', 'posthorn').filter(({ actions }) =>
    actions.some((action) => action !== 'find'),
  );
  expect(changes.map(({ resource }) => resource.collection)).toEqual(['deliveries']);
});

test('keys of the API are read by the gateway and the administration only', () => {
  expect(Object.keys(RIGHTS.apiKeys).sort()).toEqual(['admin', 'gateway']);
});

test('the program for mongosh creates a role of one database for each process', () => {
  const roles = [
    ...rolesScript('hooks').matchAll(/^db\.getSiblingDB\('admin'\)\.createRole\((.*)\);$/gm),
  ].map(([, json = '']) => JSON.parse(json) as { role: string; privileges: Privilege[] });
  expect(roles.map(({ role }) => role)).toEqual(DATABASE_USERS.map((user) => `posthorn-${user}`));
  const databases = roles.flatMap(({ privileges }) =>
    privileges.map(({ resource }) => resource.db),
  );
  expect(new Set(databases)).toEqual(new Set(['hooks']));
});
