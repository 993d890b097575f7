import { describe, expect, it, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { parseAllDocuments } from 'yaml';
import {
  DATABASE_USERS,
  databaseRoleOf,
  type Privilege,
  privilegesOf,
  DAY_RIGHTS,
  RIGHTS,
  rolesScript,
} from '../../deploy/setup/mongodb-rights.ts';
import {
  aclRulesOf,
  REDIS_USERS,
  redisUserOf,
  usersFile,
} from '../../deploy/setup/redis-rights.ts';

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
    ['posthorn-services', ['gateway, dispatcher, retry, ingest']],
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

test('only the retry service can delete messages, and the dispatcher changes only what it settles and counts [security]', () => {
  const removing = Object.entries(DAY_RIGHTS.messages).filter(([, actions]) =>
    actions.includes('remove'),
  );
  expect(removing.map(([user]) => user)).toEqual(['retry']);
  const changes = privilegesOf('dispatcher', 'posthorn').filter(({ actions }) =>
    actions.some((action) => !['find', 'changeStream'].includes(action)),
  );
  expect(changes.map(({ resource }) => resource.collection)).toEqual([
    'erasures',
    'sequences',
    'countJournal',
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
    ['retry', 'hooks_idempotencyKeys'],
  ]);
});

test('keys of the API are made by the gateway and the administration only [security]', () => {
  const makers = Object.entries(RIGHTS.apiKeys).filter(([, actions]) => actions.includes('insert'));
  expect(makers.map(([user]) => user).sort()).toEqual(['admin', 'gateway']);
  expect(RIGHTS.apiKeys.retry).toEqual(['find', 'remove']);
});

test('only what caches configuration may read all of its database, and none that of messages [security]', () => {
  const readers = DATABASE_USERS.filter((user) =>
    privilegesOf(user, 'hooks').some(
      ({ resource, actions }) =>
        resource.db === 'hooks' && resource.collection === '' && actions.includes('find'),
    ),
  );
  expect(readers).toEqual(['gateway', 'dispatcher']);
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
  expect(new Set(databases)).toEqual(
    new Set(['hooks', 'hooks_messages', 'hooks_deliveries', 'hooks_idempotencyKeys']),
  );
});

test('the program for mongosh brings the roles of an earlier version up to date', () => {
  const { made, changed } = run(rolesScript('hooks'), ROLES.slice(1));
  expect(made.map(({ role }) => role)).toEqual(ROLES.slice(0, 1));
  expect(changed.map(({ role }) => role)).toEqual(ROLES.slice(1));
  expect(changed.at(-1)?.privileges).toEqual(privilegesOf('setup', 'hooks'));
});

const ON_A_SERVER = { prefix: 'hooks:', isCluster: false };

test.each(REDIS_USERS)(
  'the %s has keys and channels of the prefix and single commands only [security]',
  (user) => {
    const [reset, on, ...rules] = aclRulesOf(user, ON_A_SERVER);
    expect([reset, on]).toEqual(['reset', 'on']);
    const simple = /^(%[RW]~hooks:|&hooks:|\+)[a-z:-]+\*?$/;
    const selectors = rules.filter((rule) => !simple.test(rule));
    // Who only tells others is not told.
    const expected = {
      gateway: ['(+publish &hooks:work)'],
      dispatcher: ['(+publish &hooks:live-attempts)'],
      retry: ['(+publish &hooks:invalidations)', '(+publish &hooks:work)'],
    }[user];
    expect(selectors).toEqual(expected);
  },
);

test('no user has the rights of a cluster on a server [security]', () => {
  const rulesOf = (isCluster: boolean): string[] =>
    REDIS_USERS.flatMap((user) => aclRulesOf(user, { prefix: 'hooks:', isCluster }));
  expect(rulesOf(false)).not.toContain('+cluster|slots');
  expect(rulesOf(true)).toContain('+cluster|slots');
});

test('the file has a user for each process, who cannot log in until a password is added', () => {
  const lines = usersFile(ON_A_SERVER).trim().split('\n');
  expect(lines.map((line) => line.split(' ')[1])).toEqual(REDIS_USERS.map(redisUserOf));
  for (const line of lines) expect(line).not.toMatch(/ (>|#|nopass)/);
});
