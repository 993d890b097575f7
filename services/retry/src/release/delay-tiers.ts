import type { DelayTopic } from '@posthorn/domain/records/topics.ts';

/** Topics up to this delay are read apart, so that a burst there never waits behind the long ones. */
const SHORT_TIER_MAX_MS = 60_000;

/**
 * Which delay topics are read together, by name. Both kinds share two consumers: each further
 * consumer asks the broker on and on, and costs CPU at rest.
 */
export function delayTiersOf(
  delayTopics: ReadonlyMap<string, DelayTopic>,
): Record<'short' | 'long', string[]> {
  const tiers = { short: [] as string[], long: [] as string[] };
  for (const [name, { delayMs }] of delayTopics) {
    tiers[delayMs <= SHORT_TIER_MAX_MS ? 'short' : 'long'].push(name);
  }
  return tiers;
}
