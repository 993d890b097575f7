import { expect, test } from '@jest/globals';
import {
  DATABASE_USERS,
  privilegesOf,
  RIGHTS,
  rolesScript,
  type Privilege,
} from '../deploy/setup/mongodb-rights.ts';

test('only the gateway can delete messages, and the dispatcher changes nothing but messages, deliveries and counts', () => {
  const removing = Object.entries(RIGHTS.messages).filter(([, actions]) =>
    actions.includes('remove'),
  );
  expect(removing.map(([user]) => user)).toEqual(['gateway']);
  const changes = privilegesOf('dispatcher', 'posthorn').filter(({ actions }) =>
    actions.some((action) => action !== 'find'),
  );
  expect(changes.map(({ resource }) => resource.collection)).toEqual([
    'messages',
    'deliveries',
    'stats',
    'usage',
  ]);
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
