import { describe, expect, test } from '@jest/globals';
import { topicNames, topicSpecs } from '@posthorn/domain/records/topics.ts';
import { StartupError } from '../service/errors.ts';
import { assertCoPartitioned, assertTopicsExist } from './connect.ts';

const names = topicNames('p.', [5_000], [1_000, 5_000]);
const all = topicSpecs(names).map(({ name }) => name);

const REMEDY = 'Run deploy/setup/add-partitions.ts as docs/partitions.md says.';

function refusalOf(existing: string[]): unknown {
  try {
    assertTopicsExist(names, new Map(existing.map((topic) => [topic, 12])));
    return null;
  } catch (error) {
    return error;
  }
}

describe('a start', () => {
  test('continues when every topic exists', () => {
    expect(refusalOf([...all, 'elsewhere'])).toBeNull();
  });

  test.each(all)('fails when %s does not exist, and names the command that creates it', (topic) => {
    const refusal = refusalOf(all.filter((name) => name !== topic));
    expect(refusal).toBeInstanceOf(StartupError);
    expect(refusal).toMatchObject({
      message:
        `Kafka has no topic ${topic}. Run deploy/setup/create-topics.ts ` +
        'with the same TOPIC_PREFIX, RETRY_DELAYS and DEFERRAL_DELAYS.',
    });
  });

  test('names every topic that an earlier version did not have', () => {
    const earlier = all.filter((name) => !name.startsWith('p.deferred.'));
    expect(String(refusalOf(earlier))).toContain('no topic p.deferred.1s, p.deferred.5s. Run');
  });
});

describe('a start with topics of different numbers of partitions', () => {
  const counts = (changed: Record<string, number> = {}): Map<string, number> =>
    new Map(all.map((topic) => [topic, changed[topic] ?? 12]));

  test('continues when only topics differ that are read on their own', () => {
    expect(() => {
      assertCoPartitioned(names, counts({ 'p.dead-letters': 1, 'p.retry.5s': 24 }));
    }).not.toThrow();
  });

  test.each(['p.message-created', 'p.retry-due', 'p.slow-lane'])(
    'fails when %s differs, and names the topics with their numbers',
    (topic) => {
      const existing = counts({ [topic]: 24 });
      const of = (name: string) => `${name} has ${existing.get(name) ?? 0}`;
      const found = [of('p.message-created'), of('p.retry-due'), of('p.slow-lane')].join(', ');
      const text = `These topics must have the same number of partitions: ${found}. `;
      expect(() => {
        assertCoPartitioned(names, existing);
      }).toThrow(new StartupError(`${text}${REMEDY}`));
    },
  );
});
