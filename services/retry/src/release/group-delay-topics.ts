import type { DelayTopic } from '@posthorn/domain/records/topics.ts';

/** Topics with delays up to this have their own consumer, so that they never wait behind the long ones. */
const SHORT_MAX_MS = 60_000;

/**
 * The names of the delay topics that one consumer reads, for each of two consumers. Both kinds of
 * delay topics share them: each further consumer would poll the broker and cost CPU at rest.
 */
export function groupDelayTopics(
  delayTopics: ReadonlyMap<string, DelayTopic>,
): Record<'short' | 'long', string[]> {
  const groups = { short: [] as string[], long: [] as string[] };
  for (const [name, { delayMs }] of delayTopics) {
    groups[delayMs <= SHORT_MAX_MS ? 'short' : 'long'].push(name);
  }
  return groups;
}
