import type { ObservedSetting, ObservedTopic } from '@posthorn/domain/records/topic-drift.ts';
import { TOPIC_SETTINGS, type TopicSpec } from '@posthorn/domain/records/topics.ts';
import kafkajs, { type Admin, type ITopicMetadata, type Kafka } from 'kafkajs';
import { withTimeout } from '../../async/pause.ts';
import { messageOf } from '../../service/errors.ts';
import { closeAdmin, type ExistingTopics } from '../connection/connect.ts';

/** Topics of an installation, as Kafka describes them. */
export interface FoundTopics {
  /** Every topic that this user may see. */
  existing: ExistingTopics;
  /** What is expected of the existing ones, and of those that are missing. */
  specs: readonly TopicSpec[];
  /** Those of `specs` that exist; without settings when these could not be read. */
  observed: readonly ObservedTopic[];
  /** Why the settings could not be read, or null. */
  unreadable: string | null;
}

const { ConfigResourceTypes } = kafkajs;

const TIMEOUT_MS = 10_000;

/**
 * Reads which topics exist, and the settings of those in `specsAmong`, over one connection. Rejects when
 * Kafka does not answer within 10 seconds; settings that this user may not read are no failure.
 */
export async function observeTopics(
  kafka: Kafka,
  specsAmong: (existing: Iterable<string>) => readonly TopicSpec[],
): Promise<FoundTopics> {
  const admin = kafka.admin();
  try {
    const reading = admin.connect().then(() => observe(admin, specsAmong));
    return await withTimeout(reading, TIMEOUT_MS);
  } finally {
    await closeAdmin(admin);
  }
}

async function observe(
  admin: Admin,
  specsAmong: (existing: Iterable<string>) => readonly TopicSpec[],
): Promise<FoundTopics> {
  const { topics } = await admin.fetchTopicMetadata();
  const existing = new Map(topics.map(({ name, partitions }) => [name, partitions.length]));
  const specs = specsAmong(existing.keys());
  const expected = new Set(specs.map(({ name }) => name));
  const described = topics.filter(({ name }) => expected.has(name));
  const { settings, unreadable } = await readSettings(
    admin,
    described.map(({ name }) => name),
  );
  const observed = described.map((topic) => toObserved(topic, settings.get(topic.name)));
  return { existing, specs, observed, unreadable };
}

type Settings = ReadonlyMap<string, ObservedSetting>;

function toObserved(
  { name, partitions }: ITopicMetadata,
  settings: Settings = new Map(),
): ObservedTopic {
  const copies = partitions.map(({ replicas }) => replicas.length);
  return { name, partitions: partitions.length, replication: Math.min(...copies), settings };
}

interface ReadSettings {
  settings: ReadonlyMap<string, Settings>;
  unreadable: string | null;
}

async function readSettings(admin: Admin, topics: readonly string[]): Promise<ReadSettings> {
  if (topics.length === 0) return { settings: new Map(), unreadable: null };
  try {
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: topics.map((name) => ({
        type: ConfigResourceTypes.TOPIC,
        name,
        configNames: [...TOPIC_SETTINGS],
      })),
    });
    const settings = resources.map(
      ({ resourceName, configEntries }) => [resourceName, toSettings(configEntries)] as const,
    );
    return { settings: new Map(settings), unreadable: null };
  } catch (error) {
    return { settings: new Map(), unreadable: messageOf(error) };
  }
}

/** ConfigSource.TOPIC_CONFIG, an enum that exists only in the types of kafkajs. */
const SET_ON_THE_TOPIC = 1;

function toSettings(
  entries: readonly { configName: string; configValue: string; configSource: number }[],
): Settings {
  return new Map(
    entries.map(({ configName, configValue, configSource }) => [
      configName,
      { value: configValue, isPinned: configSource === SET_ON_THE_TOPIC },
    ]),
  );
}
