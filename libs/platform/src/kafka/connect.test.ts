import { describe, expect, test } from '@jest/globals';
import { topicNames, topicSpecs } from '@posthorn/domain/records/topics.ts';
import { StartupError } from '../service/errors.ts';
import { assertTopicsExist } from './connect.ts';

const names = topicNames('p.', [5_000], [1_000, 5_000]);
const all = topicSpecs(names).map(({ name }) => name);

function refusalOf(existing: string[]): unknown {
  try {
    assertTopicsExist(names, new Set(existing));
    return null;
  } catch (error) {
    return error;
  }
}

describe('a start', () => {
  test('continues when every topic exists', () => {
    expect(refusalOf([...all, 'elsewhere'])).toBeNull();
  });

  test.each(all)('fails when %s does not exist, and says how to create it', (topic) => {
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
