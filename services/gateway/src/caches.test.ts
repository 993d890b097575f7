import { expect, test } from '@jest/globals';
import type { Change } from '@posthorn/platform/mongo/follow-changes.ts';
import { countChangesOfUnknownApps } from './caches.ts';

const UPDATE: Change = {
  collection: 'webhooks',
  id: 'wh_1',
  isRemoved: false,
  appId: null,
  companyId: null,
  fields: ['url', 'updatedAt'],
};

test.each<[string, Partial<Change>, number]>([
  ['an update of a webhook', {}, 1],
  ['a removal of a webhook', { isRemoved: true, fields: null }, 1],
  ['an update of all fields', { fields: null }, 1],
  ['a new webhook of an app', { appId: 'app_1', fields: null }, 0],
  ['a note that a webhook fails', { fields: ['failing'] }, 0],
  ['an update of such a note and more', { fields: ['failing', 'disabled'] }, 1],
  ['an update of an app', { collection: 'apps' }, 0],
])('%s changes the lists of unknown apps %j: %i', (_name, given, count) => {
  let report: (change: Change) => void = () => undefined;
  const counted = countChangesOfUnknownApps({ listen: (onChange) => (report = onChange) });
  report({ ...UPDATE, ...given });
  expect(counted()).toBe(count);
});
