import { beforeEach, describe, expect, it, test } from '@jest/globals';
import { wantedSettings } from '@posthorn/domain/records/topics.ts';
import { Registry } from 'prom-client';
import { sampleTopicSpec } from '../../../../test/support/samples/sample-topic-spec.ts';
import { StartupError } from '../service/errors.ts';
import { checkTopics, createTopicWatch, type TopicWatch } from './topics.ts';

const specs = [sampleTopicSpec('p.retry-due'), sampleTopicSpec('p.slow-lane')];

/** With changes to the first topic. */
function checking(changed: Record<string, string>, unreadable: string | null = null, copies = 3) {
  const registry = new Registry();
  const warnings: string[] = [];
  const observed = specs.map((spec, n) => {
    const replication = n === 0 ? copies : 3;
    const values = { ...wantedSettings({ spec, replication }), ...(n === 0 && changed) };
    const settings = Object.entries(values).map(
      ([name, value]) => [name, { value, isPinned: true }] as const,
    );
    return { name: spec.name, partitions: 12, replication, settings: new Map(settings) };
  });
  const logger = {
    warn: (fields: object, text: string) => void warnings.push(`${JSON.stringify(fields)} ${text}`),
  } as Parameters<typeof checkTopics>[1]['logger'];
  const run = (): void => {
    checkTopics({ specs, observed, unreadable }, { registry, logger });
  };
  const gauges = async () =>
    (await registry.getMetricsAsJSON()).map(({ values }) => values.map(({ value }) => value));
  return { run, warnings, gauges };
}

describe('a start', () => {
  it('logs nothing about topics with the required settings', async () => {
    const { run, warnings, gauges } = checking({});
    run();
    expect(warnings).toEqual([]);
    expect(await gauges()).toEqual([[2], [0]]);
  });

  it('fails when a setting could lose records, and names it and its remedy', async () => {
    const { run, gauges } = checking({ 'cleanup.policy': 'compact', 'segment.ms': '999999999' });
    expect(run).toThrow(
      new StartupError(
        'Settings of topics could lose records or stop deliveries:\n' +
          '  p.retry-due has cleanup.policy=compact, wanted delete: ' +
          'only the newest record of each webhook is kept, the others are lost\n' +
          'Correct settings with `npm run admin -- topics apply` (docs/topics.md), then start again.',
      ),
    );
    expect(await gauges()).toEqual([[2], [2]]);
  });

  it('fails when a topic has one copy and another one more', () => {
    expect(checking({}, null, 1).run).toThrow(
      new StartupError(
        'Settings of topics could lose records or stop deliveries:\n' +
          '  p.retry-due has replication=1, wanted 3: ' +
          'records are lost with one broker, and other topics have more copies\n' +
          'Add copies with kafka-reassign-partitions.sh (docs/topics.md), then start again.',
      ),
    );
  });

  it('continues with one warning when harmless settings differ', async () => {
    const { run, warnings, gauges } = checking({ 'segment.ms': '604800000', 'retention.ms': '-1' });
    run();
    expect(warnings).toEqual([
      '{"differences":2,"first":"p.retry-due has retention.ms=-1, wanted 3600000"} ' +
        'settings of the topics differ from docs/topics.md, without danger for records: npm run admin -- topics check',
    ]);
    expect(await gauges()).toEqual([[2], [2]]);
  });

  it('continues with a warning when this user may not read the settings', async () => {
    const { run, warnings, gauges } = checking({ 'cleanup.policy': 'compact' }, 'Not authorized');
    run();
    expect(warnings).toEqual([expect.stringContaining('lacks DescribeConfigs')]);
    expect(await gauges()).toEqual([[0], [0]]);
  });
});

describe('watch topics', () => {
  let existing: string[];
  let isKafkaAway: boolean;
  let lines: string[];
  let registry: Registry;
  let watch: TopicWatch;

  beforeEach(() => {
    existing = ['retry-due', 'retry.5s', 'retry.9h'];
    isKafkaAway = false;
    lines = [];
    registry = new Registry();
    const log =
      (level: string) =>
      (fields: object, text = ''): void => {
        lines.push(`${level} ${'topic' in fields ? String(fields.topic) : ''} ${text}`);
      };
    watch = createTopicWatch({
      required: ['retry-due', 'retry.5s'],
      optional: ['retry.9h'],
      readTopics: () =>
        isKafkaAway
          ? Promise.reject(new Error('away'))
          : Promise.resolve(new Map(existing.map((topic) => [topic, 1]))),
      registry,
      logger: { error: log('error'), info: log('info'), warn: log('warn') },
    });
  });

  async function missing(): Promise<string[]> {
    const { values = [] } =
      (await registry.getSingleMetric('posthorn_kafka_topic_missing')?.get()) ?? {};
    return values.filter(({ value }) => value === 1).map(({ labels }) => String(labels.topic));
  }

  describe('a topic that was deleted', () => {
    test('is logged once and shown until it exists again', async () => {
      await watch.tick();
      expect([lines, await missing()]).toEqual([[], []]);
      existing = ['retry-due', 'retry.9h'];
      await watch.tick();
      await watch.tick();
      expect(lines).toEqual([
        'error retry.5s a topic was deleted: the records in it are lost, create it again',
      ]);
      expect([await missing(), watch.isAlive()]).toEqual([['retry.5s'], true]);
      existing.push('retry.5s');
      await watch.tick();
      expect([lines[1], await missing()]).toEqual(['info retry.5s the topic exists again', []]);
    });

    test('asks for a restart when it is of earlier settings, after a second check', async () => {
      existing = ['retry-due', 'retry.5s'];
      await watch.tick();
      expect(watch.isAlive()).toBe(true);
      await watch.tick();
      expect(watch.isAlive()).toBe(false);
    });

    test('is not assumed while Kafka does not answer', async () => {
      isKafkaAway = true;
      await watch.tick();
      await watch.tick();
      expect([await missing(), watch.isAlive()]).toEqual([[], true]);
    });
  });
});
