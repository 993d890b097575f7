import { expect, test } from '@jest/globals';
import { settings } from '@posthorn/platform/service/settings.ts';
import { containerOf, find, readBase } from '../../k8s/read-manifests.ts';
import { lettersConfig } from '../../services/admin/src/letters.ts';
import { topicsConfig } from '../../services/admin/src/topic-commands.ts';

const manifests = readBase();
const { env = [], envFrom } = containerOf(find(manifests, 'gateway'));
const maps = envFrom.map(({ configMapRef }) => configMapRef.name);
const set = new Set([
  ...env.map(({ name }) => name),
  ...manifests
    .filter(({ kind, metadata }) => kind === 'ConfigMap' && maps.includes(metadata.name))
    .flatMap(({ data = {} }) => Object.keys(data)),
]);

const missing = (shape: object): string[] => Object.keys(shape).filter((name) => !set.has(name));

test('a gateway pod has the settings of the admin commands that docs/runbook.md runs in it', () => {
  const { mongodb, encryption, publicUrl } = settings;
  const shape = { ...mongodb, ...encryption, ...publicUrl, ...lettersConfig.shape };
  expect(missing(shape)).toEqual([]);
});

test('a gateway pod has not those of the topics commands, which have CronJobs', () => {
  expect(missing(topicsConfig.shape)).toEqual(['TOPIC_PARTITIONS', 'TOPIC_REPLICATION']);
});
