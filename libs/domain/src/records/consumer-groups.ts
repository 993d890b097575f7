import type { DelayTopic, TopicNames } from './topics.ts';

/** The members of a group share the partitions of its topics. */
export interface ConsumerGroup {
  groupId: string;
  topics: readonly string[];
}

/** Every consumer group of one installation. */
export interface ConsumerGroups {
  /** Fresh messages and retries together, so that one dispatcher has partition p of both topics. */
  dispatcher: ConsumerGroup;
  /** A group of its own, so that a backlog of slow endpoints delays nothing else. */
  slowLane: ConsumerGroup;
  park: ConsumerGroup;
  /** Read the delay topics. One of them may have no topic. */
  releaseShort: ConsumerGroup;
  releaseLong: ConsumerGroup;
}

/** Topics with delays up to this have their own consumer, so that they never wait behind the long ones. */
const SHORT_MAX_MS = 60_000;

/**
 * `delayTopics` holds every delay topic that exists, those of earlier settings included. Both kinds share
 * two consumers: each further one would poll the broker and cost CPU at rest.
 */
export function consumerGroups(
  prefix: string,
  topics: Pick<TopicNames, 'messageCreated' | 'retryDue' | 'slowLane' | 'deliveryFailed'>,
  delayTopics: ReadonlyMap<string, DelayTopic>,
): ConsumerGroups {
  const names = [...delayTopics];
  const namesWhere = (matches: (topic: DelayTopic) => boolean): string[] =>
    names.filter(([, topic]) => matches(topic)).map(([name]) => name);
  const { messageCreated, retryDue, slowLane, deliveryFailed } = topics;
  return {
    dispatcher: { groupId: `${prefix}dispatcher`, topics: [messageCreated, retryDue] },
    slowLane: { groupId: `${prefix}dispatcher-slow`, topics: [slowLane] },
    park: { groupId: `${prefix}retry-park`, topics: [deliveryFailed] },
    releaseShort: {
      groupId: `${prefix}retry-release-short`,
      topics: namesWhere(({ delayMs }) => delayMs <= SHORT_MAX_MS),
    },
    releaseLong: {
      groupId: `${prefix}retry-release-long`,
      topics: namesWhere(({ delayMs }) => delayMs > SHORT_MAX_MS),
    },
  };
}
