import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parseAllDocuments } from 'yaml';

interface Acl {
  resource: { type: 'topic' | 'group'; name: string; patternType: string };
  operations: string[];
}

interface KafkaUser {
  metadata: { name: string };
  spec: { authorization: { acls: Acl[] } };
}

const ROOT = join(import.meta.dirname, '../..');
const USERS = readFileSync(join(ROOT, 'k8s/components/strimzi/users.yaml'), 'utf8');
const PAGE = readFileSync(join(ROOT, 'docs/security.md'), 'utf8');

const users = parseAllDocuments(USERS).map((document) => document.toJS() as KafkaUser);

/** What the page allows these processes together, on topics and on groups. */
function documented(processes: readonly string[]): Set<string>[] {
  const rights = processes.map((process) => {
    const row = PAGE.split('\n').find((line) => line.startsWith(`| ${process} `)) ?? '';
    const [, , topics = '', groups = ''] = row.split('|').map((cell) => cell.trim());
    expect(topics).not.toBe('');
    return [topics, groups].map((cell) => (cell === '–' ? [] : cell.split(', ')));
  });
  return [0, 1].map((kind) => new Set(rights.flatMap((cells) => cells[kind] ?? [])));
}

describe('the users of Kafka that Strimzi makes', () => {
  it.each([
    ['posthorn-services', ['gateway, dispatcher, retry']],
    ['posthorn-create-topics', ['create-topics']],
    [
      'posthorn-administer-topics',
      ['add-partitions', '`admin topics check`', '`admin topics apply`'],
    ],
  ])('%s has the rights in docs/security.md, and no others', (name, processes) => {
    const user = users.find(({ metadata }) => metadata.name === name);
    const acls = user?.spec.authorization.acls ?? [];
    const of = (type: string): Set<string> =>
      new Set(
        acls.flatMap(({ resource, operations }) => (resource.type === type ? operations : [])),
      );
    expect([of('topic'), of('group')]).toEqual(documented(processes));
    for (const { resource } of acls) {
      expect(resource).toMatchObject({ name: 'posthorn.', patternType: 'prefix' });
    }
  });
});

interface Context {
  securityContext?: object;
}

interface PodTemplate {
  pod?: Context;
  [container: `${string}Container`]: Context | undefined;
}

/** What the restricted pod security standard asks of a container; `runAsNonRoot` may be that of the pod. */
const RESTRICTED = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
};

describe('the pods of Kafka that Strimzi makes', () => {
  const text = readFileSync(join(ROOT, 'k8s/components/strimzi/kafka.yaml'), 'utf8');
  const objects = parseAllDocuments(text).map(
    (document) =>
      document.toJS() as {
        metadata: { name: string };
        spec: Record<string, unknown>;
        kind: string;
      },
  );
  const pools = objects.filter(({ kind }) => kind === 'KafkaNodePool');

  it('are restricted: those of each pool, whose init container looks up the zone', () => {
    expect(pools.length).toBeGreaterThan(0);
    for (const { spec } of pools) {
      const template = spec.template as PodTemplate;
      expect(template.pod?.securityContext).toMatchObject({ runAsNonRoot: true });
      expect(template.kafkaContainer?.securityContext).toEqual(RESTRICTED);
      expect(template.initContainer?.securityContext).toEqual(RESTRICTED);
    }
  });

  it('are restricted: that of the operator of users', () => {
    const kafka = objects.find(({ kind }) => kind === 'Kafka');
    const { template, ...operators } = kafka?.spec.entityOperator as { template: PodTemplate };
    expect(Object.keys(operators)).toEqual(['userOperator']);
    expect(template.pod?.securityContext).toMatchObject({ runAsNonRoot: true });
    expect(template.userOperatorContainer?.securityContext).toEqual(RESTRICTED);
  });
});
