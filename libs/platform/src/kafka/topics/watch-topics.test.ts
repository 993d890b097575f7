import { beforeEach, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { createTopicWatch, type TopicWatch } from './watch-topics.ts';

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
  test('is told once and shown until it exists again', async () => {
    await watch.tick();
    expect([lines, await missing()]).toEqual([[], []]);
    existing = ['retry-due', 'retry.9h'];
    await watch.tick();
    await watch.tick();
    expect(lines).toEqual([
      'error retry.5s a topic was deleted: what waited in it is lost, create it again',
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

  test('is not assumed while Kafka cannot be asked', async () => {
    isKafkaAway = true;
    await watch.tick();
    await watch.tick();
    expect([await missing(), watch.isAlive()]).toEqual([[], true]);
  });
});
