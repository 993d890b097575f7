import { expect, it, test } from '@jest/globals';
import { STRICT_EGRESS } from '@posthorn/domain/egress.ts';
import {
  judgeClock,
  judgeDisk,
  judgeEgress,
  judgeRedis,
  judgeReplicaSet,
  judgeTopics,
  type Members,
} from './doctor.ts';

const member = (n: number, health = 1): NonNullable<Members>[number] => ({
  name: `mongo-${n}`,
  health,
  stateStr: health === 1 ? 'SECONDARY' : '(not reachable/healthy)',
});

test.each([
  [{}, null, 'fail'],
  [{ msg: 'isdbgrid' }, null, 'ok'],
  [{ setName: 'rs', hosts: ['a'] }, null, 'warn'],
  [{ setName: 'rs', hosts: ['a', 'b', 'c'] }, null, 'ok'],
  [{ setName: 'rs' }, [member(1), member(2), member(3, 0)], 'warn'],
  [{ setName: 'rs' }, [member(1), member(2, 0), member(3, 0)], 'fail'],
] as const)('the replica set %j with %j is %s', (hello, members, status) => {
  const { hosts, ...rest } = { hosts: [] as readonly string[], ...hello };
  const known = members === null ? null : [...members];
  expect(judgeReplicaSet({ ...rest, hosts: [...hosts] }, known).status).toBe(status);
});

it('fails for topics that are missing or that services refuse, and warns of others', () => {
  const found = { topics: 12, missing: [], drifts: [], unpinned: [] };
  const drift = {
    topic: 't',
    setting: 'retention.ms',
    value: '1',
    wanted: '2',
    meaning: '',
  } as const;
  const of = (severity: 'refuse' | 'warn') => [{ ...drift, severity, remedy: 'apply' } as const];
  expect(judgeTopics(found).status).toBe('ok');
  expect(judgeTopics({ ...found, drifts: of('warn') }).status).toBe('warn');
  expect(judgeTopics({ ...found, drifts: of('refuse') }).status).toBe('fail');
  expect(judgeTopics({ ...found, missing: ['t'] }).status).toBe('fail');
});

it('judges the clock by its distance', () => {
  expect([0, -4_000, 6_000, -61_000].map((ms) => judgeClock(ms).status)).toEqual([
    'ok',
    'ok',
    'warn',
    'fail',
  ]);
});

it('warns when the disk is too small for the retention', () => {
  const GB = 1_000_000_000;
  const use = { used: 10 * GB, free: 60 * GB, ageDays: 5, retentionDays: 30 };
  expect(judgeDisk(use)).toEqual({
    status: 'ok',
    message: '10.0 GB used, 60.0 GB free; the retention of 30 days needs about 50.0 GB more',
  });
  expect(judgeDisk({ ...use, free: 40 * GB }).status).toBe('warn');
  expect(judgeDisk({ ...use, free: GB }).status).toBe('fail');
  expect(judgeDisk({ ...use, free: null }).status).toBe('warn');
  // The first days have gone already: it grows no more.
  expect(judgeDisk({ ...use, free: 5 * GB, ageDays: 40 }).status).toBe('ok');
});

it('warns of a Redis that evicts keys', () => {
  const info = (policy: string, maxmemory: number): string =>
    `# Memory\r\nmaxmemory:${maxmemory}\r\nmaxmemory_policy:${policy}\r\n`;
  expect(judgeRedis(info('noeviction', 100)).status).toBe('ok');
  expect(judgeRedis(info('allkeys-lru', 0)).status).toBe('ok');
  expect(judgeRedis(info('allkeys-lru', 100)).status).toBe('warn');
});

it('names what deliveries may reach besides public addresses', () => {
  expect(judgeEgress(STRICT_EGRESS, null).status).toBe('ok');
  expect(judgeEgress({ ...STRICT_EGRESS, allowLoopback: true, allowHttp: true }, null)).toEqual({
    status: 'warn',
    message:
      'Deliveries may also go to: this machine, plain http; directly. Loopback is for trials only',
  });
  expect(judgeEgress(STRICT_EGRESS, 'proxy:3128').message).toContain('through proxy:3128');
});
