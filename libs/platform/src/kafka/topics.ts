import {
  type Drift,
  findCopyDrift,
  findSettingDrift,
  type ObservedSetting,
  type ObservedTopic,
} from '@posthorn/domain/records/topic-drift.ts';
import { TOPIC_SETTINGS, type TopicSpec } from '@posthorn/domain/records/topics.ts';
import kafkajs, { type Admin, type Kafka } from 'kafkajs';
import { Gauge, type Registry } from 'prom-client';
import { createLoop } from '../async/loop.ts';
import { messageOf, StartupError } from '../service/errors.ts';
import type { Logger } from '../service/logger.ts';
import { type ExistingTopics, withAdmin } from './connect.ts';

const COMMAND = 'npm run admin -- topics';

/**
 * Throws StartupError when settings of the topics could lose records, or keep them from being written or read.
 * Logs one warning when others differ, or when this user may not read them.
 */
export function checkTopics(
  { specs, observed, unreadable }: Omit<FoundTopics, 'existing'>,
  { registry, logger }: { registry: Registry; logger: Pick<Logger, 'warn'> },
): void {
  const gauge = (name: string, help: string): Gauge =>
    new Gauge({ name, help, registers: [registry] });
  const checked = gauge(
    'posthorn_kafka_topics_checked',
    'Topics whose settings were compared at the start; 0 when this process may not read them.',
  );
  const differing = gauge(
    'posthorn_kafka_topic_settings_differing',
    'Settings of topics that differed from the contract at the start (docs/topics.md).',
  );
  if (unreadable !== null) {
    logger.warn(
      { reason: unreadable },
      'cannot check the settings of the topics: the Kafka user lacks DescribeConfigs (docs/security.md)',
    );
    return;
  }
  const drifts = [...findSettingDrift(specs, observed), ...findCopyDrift(observed)];
  checked.set(observed.length);
  differing.set(drifts.length);
  const refused = drifts.filter(({ severity }) => severity === 'refuse');
  if (refused.length > 0) throw refusalOf(refused);
  const [first] = drifts;
  if (!first) return;
  logger.warn(
    { differences: drifts.length, first: describe(first) },
    `settings of the topics differ from docs/topics.md, without danger for records: ${COMMAND} check`,
  );
}

function refusalOf(drifts: readonly Drift[]): StartupError {
  const isCopies = ({ remedy }: Drift): boolean => remedy === 'reassign';
  const remedies = [
    ...(drifts.every(isCopies) ? [] : [`Correct settings with \`${COMMAND} apply\``]),
    ...(drifts.some(isCopies) ? ['Add copies with kafka-reassign-partitions.sh'] : []),
  ];
  return new StartupError(
    [
      'Settings of topics could lose records or stop deliveries:',
      ...drifts.map((drift) => `  ${describe(drift)}: ${drift.meaning}`),
      `${remedies.join('. ')} (docs/topics.md), then start again.`,
    ].join('\n'),
  );
}

function describe({ topic, setting, value, wanted }: Drift): string {
  return `${topic} has ${setting}=${value}, wanted ${wanted}`;
}

/** Topics of an installation, as Kafka describes them. */
interface FoundTopics {
  /** Every topic that this user may see. */
  existing: ExistingTopics;
  /** The required settings of the existing topics, and of those that are missing. */
  specs: readonly TopicSpec[];
  /** The topics of `specs` that exist; without settings when these could not be read. */
  observed: readonly ObservedTopic[];
  /** Why the settings could not be read, or null. */
  unreadable: string | null;
}

/**
 * Reads which topics exist, and the settings of those in `specsAmong`, over one connection. Rejects when
 * Kafka does not answer within 10 seconds; settings that this user may not read are no failure.
 */
export function observeTopics(
  kafka: Kafka,
  specsAmong: (existing: Iterable<string>) => readonly TopicSpec[],
): Promise<FoundTopics> {
  return withAdmin(kafka, { timeoutMs: TIMEOUT_MS }, async (admin) => {
    const { topics } = await admin.fetchTopicMetadata();
    const existing = new Map(topics.map(({ name, partitions }) => [name, partitions.length]));
    const specs = specsAmong(existing.keys());
    const expected = new Set(specs.map(({ name }) => name));
    const described = topics.filter(({ name }) => expected.has(name));
    const names = described.map(({ name }) => name);
    const { settings, unreadable } = await readSettings(admin, names);
    const observed = described.map(({ name, partitions }): ObservedTopic => {
      const replication = Math.min(...partitions.map(({ replicas }) => replicas.length));
      const ofTopic = settings.get(name) ?? new Map<string, ObservedSetting>();
      return { name, partitions: partitions.length, replication, settings: ofTopic };
    });
    return { existing, specs, observed, unreadable };
  });
}

const TIMEOUT_MS = 10_000;
const { ConfigResourceTypes } = kafkajs;
/** ConfigSource.TOPIC_CONFIG, an enum that exists only in the types of kafkajs. */
const SET_ON_THE_TOPIC = 1;

interface ReadSettings {
  /** Topic → name of the setting → its value. */
  settings: ReadonlyMap<string, ReadonlyMap<string, ObservedSetting>>;
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
    const settings = resources.map(({ resourceName, configEntries }) => {
      const ofTopic = configEntries.map(
        ({ configName, configValue: value, configSource }): [string, ObservedSetting] => [
          configName,
          { value, isPinned: (configSource as number) === SET_ON_THE_TOPIC },
        ],
      );
      return [resourceName, new Map(ofTopic)] as const;
    });
    return { settings: new Map(settings), unreadable: null };
  } catch (error) {
    return { settings: new Map(), unreadable: messageOf(error) };
  }
}

export interface TopicWatchDeps {
  /** The topics of the present settings. Nothing works without one of them until it is created again. */
  required: readonly string[];
  /** Topics of earlier settings that are read too. A process that starts without them works. */
  optional: readonly string[];
  readTopics: () => Promise<ExistingTopics>;
  registry: Registry;
  logger: Pick<Logger, 'error' | 'info' | 'warn'>;
}

export interface TopicWatch {
  start: () => void;
  /** Begins no further check. Does not wait for the one that runs. */
  stop: () => void;
  /** One check; `start` makes one every 30 seconds. */
  tick: () => Promise<void>;
  /**
   * False when an optional topic was missing in two checks: a consumer requests all its topics together,
   * and reads none of them until the process is restarted.
   */
  isAlive: () => boolean;
}

const EVERY_MS = 30_000;

/** Watches for topics that were deleted while a service runs. */
export function createTopicWatch(deps: TopicWatchDeps): TopicWatch {
  const { required, optional, readTopics, registry, logger } = deps;
  const missing = new Set<string>();
  let isAlive = true;
  new Gauge({
    name: 'posthorn_kafka_topic_missing',
    help: '1 while a topic that this process needs does not exist, otherwise 0.',
    labelNames: ['topic'],
    registers: [registry],
    collect() {
      for (const topic of required) this.set({ topic }, missing.has(topic) ? 1 : 0);
    },
  });

  async function check(): Promise<void> {
    const existing = await readTopics();
    const gone = optional.filter((topic) => !existing.has(topic));
    isAlive = !gone.some((topic) => missing.has(topic));
    if (gone.length > 0) logger.warn({}, 'a delay topic of earlier settings was deleted');
    for (const topic of optional) missing.delete(topic);
    for (const topic of gone) missing.add(topic);
    for (const topic of required) note(topic, !existing.has(topic));
  }

  function note(topic: string, isMissing: boolean): void {
    if (isMissing === missing.has(topic)) return;
    if (isMissing) {
      missing.add(topic);
      logger.error({ topic }, 'a topic was deleted: the records in it are lost, create it again');
    } else {
      missing.delete(topic);
      logger.info({ topic }, 'the topic exists again');
    }
  }

  const loop = createLoop({ name: 'topic watch', everyMs: EVERY_MS, run: check, logger });
  return {
    start: loop.start,
    stop: () => void loop.stop(),
    tick: loop.tick,
    isAlive: () => isAlive,
  };
}
