import { describe, expect, test } from '@jest/globals';
import {
  clusterOf,
  COMPANY_TOPICS,
  companyOfTopic,
  companyTopicOf,
  foreignClusters,
  ingestSources,
  sourcesAmong,
} from './ingest.ts';

const parse = (sources: unknown) => ingestSources.safeParse(JSON.stringify(sources));
const ONE = { topic: 'orders', companyId: 'comp_1' };

describe('INGEST_CLUSTERS', () => {
  const of = (cluster: object) =>
    foreignClusters.safeParse(JSON.stringify([{ brokers: ['kafka-2:9093'], ...cluster }]));

  test('is a JSON array of clusters, each with TLS unless it says otherwise', () => {
    expect(of({}).data).toEqual([{ brokers: ['kafka-2:9093'], tls: true }]);
    const login = { mechanism: 'plain', username: 'u', password: 'p' };
    expect(of({ ...login, caFile: '/ca.pem' }).data).toMatchObject([login]);
  });

  test.each([
    ['a password alone', { password: 'hush' }],
    ['a login without a mechanism', { username: 'u', password: 'hush' }],
    ['another mechanism', { mechanism: 'gssapi', username: 'u', password: 'hush' }],
    ['a field that does not exist', { user: 'u' }],
    ['no brokers', { brokers: [] }],
  ])('must not have %s, and its problems show no password', (_what, cluster) => {
    const { success, error } = of(cluster);
    expect(success).toBe(false);
    expect(JSON.stringify(error?.issues)).not.toContain('hush');
  });

  test('has a cluster once', () => {
    const twice = [{ brokers: ['b:1', 'a:1'] }, { brokers: ['a:1', 'b:1'] }];
    expect(foreignClusters.safeParse(JSON.stringify(twice)).success).toBe(false);
  });
});

describe('INGEST_SOURCES', () => {
  test('is a JSON array of sources', () => {
    const full = {
      ...ONE,
      appId: 'app_1',
      eventTypeHeader: 'kind',
      orderingKeyFromRecordKey: true,
      brokers: ['kafka-2:9092'],
    };
    expect(parse([ONE, full]).data).toEqual([ONE, full]);
    expect(parse([]).data).toEqual([]);
  });

  test.each([
    ['a field that does not exist', [{ ...ONE, orderingKeyFromHeader: 'x' }]],
    ['no company', [{ topic: 'orders' }]],
    ['a name that no topic can have', [{ ...ONE, topic: 'a b' }]],
    ['a topic twice', [ONE, { ...ONE, companyId: 'comp_2' }]],
    ['an address without a port', [{ ...ONE, brokers: ['kafka'] }]],
    ['no array', ONE],
    ['more than 50', Array.from({ length: 51 }, (_, n) => ({ ...ONE, topic: `t${n}` }))],
  ])('must not have %s', (_what, sources) => {
    expect(parse(sources).success).toBe(false);
  });

  test('that is no JSON is refused without showing it', () => {
    const { error } = ingestSources.safeParse('[{"topic":');
    expect(error?.issues.map(({ message }) => message).join()).not.toContain('Unexpected');
    expect(error?.issues).toHaveLength(1);
  });

  test('may have a topic of one name in two clusters', () => {
    expect(parse([ONE, { ...ONE, brokers: ['kafka-2:9092'] }]).success).toBe(true);
  });
});

describe('the sources of a cluster', () => {
  const other = { ...ONE, topic: 'far', brokers: ['b:1', 'a:1'] };
  const among = (topics: string[], cluster = '', companyTopicsPrefix: string | null = 'p.') =>
    Object.fromEntries(
      [...sourcesAmong(topics, { sources: [ONE, other], cluster, companyTopicsPrefix })].map(
        ([topic, { name, companyId }]) => [topic, `${name} ${companyId}`],
      ),
    );

  test('are those whose topic exists there', () => {
    expect(among(['orders', 'far', 'foreign'])).toEqual({ orders: 'orders comp_1' });
    expect(among(['orders', 'far'], clusterOf(other))).toEqual({ far: 'far comp_1' });
    expect(among([])).toEqual({});
  });

  test('are company topics too, under one name', () => {
    const topic = companyTopicOf('p.', 'comp_9');
    expect(among([topic])).toEqual({ [topic]: `${COMPANY_TOPICS} comp_9` });
    expect(among([topic], '', null)).toEqual({});
    expect(among(['p.ingest.', 'p.ingest-rejected'])).toEqual({});
  });

  test('are as configured where a company topic is a source too', () => {
    const topic = companyTopicOf('p.', 'comp_9');
    const sources = [{ topic, companyId: 'comp_1' }];
    const found = sourcesAmong([topic], { sources, cluster: '', companyTopicsPrefix: 'p.' });
    expect(found.get(topic)).toMatchObject({ companyId: 'comp_1', name: topic });
  });
});

test('The name of a company topic names its company', () => {
  expect(companyOfTopic('p.', companyTopicOf('p.', 'comp_1'))).toBe('comp_1');
  expect(companyOfTopic('p.', 'q.ingest.comp_1')).toBeNull();
});
