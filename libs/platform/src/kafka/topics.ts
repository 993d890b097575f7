import {
  type Drift,
  findCopyDrift,
  findSettingDrift,
  type ObservedSetting,
  type ObservedTopic,
} from '@posthorn/domain/records/topic-drift.ts';
import { TOPIC_SETTINGS, type TopicSpec } from '@posthorn/domain/records/topics.ts';
import kafkajs, { type Admin, type ITopicMetadata, type Kafka } from 'kafkajs';
import { Gauge, type Registry } from 'prom-client';
import { createLoop } from '../async/loop.ts';
import { withTimeout } from '../async/pause.ts';
import { messageOf, StartupError } from '../service/errors.ts';
import type { Logger } from '../service/logger.ts';
import { closeAdmin, type ExistingTopics } from './connect.ts';

const COMMAND = 'npm run admin -- topics';

interface CheckTopicsDeps {
  registry: Registry;
  logger: Pick<Logger, 'warn'>;
}

/**
 * Throws StartupError when settings of the topics could lose records, or keep them from being written or read.
 * Logs one warning when others differ, or when this user may not read them.
 */
export function checkTopics(
  { specs, observed, unreadable }: Omit<FoundTopics, 'existing'>,
  { registry, logger }: CheckTopicsDeps,
): void {
  const gauges = openGauges(registry);
  if (unreadable !== null) {
    logger.warn(
      { reason: unreadable },
      'the settings of the topics could not be checked: it needs the right DescribeConfigs (docs/security.md)',
    );
    return;
  }
  const drifts = [...findSettingDrift(specs, observed), ...findCopyDrift(observed)];
  gauges.checked.set(observed.length);
  gauges.differing.set(drifts.length);
  const refused = drifts.filter(({ severity }) => severity === 'refuse');
  if (refused.length > 0) throw refusalOf(refused);
  if (drifts.length === 0) return;
  logger.warn(
    { differences: drifts.length, first: describe(drifts[0]) },
    `settings of the topics differ from docs/topics.md, without danger for records: ${COMMAND} check`,
  );
}

function refusalOf(drifts: readonly Drift[]): StartupError {
  const lines = drifts.map((drift) => `  ${describe(drift)}: ${drift.meaning}`);
  return new StartupError(
    [
      'Settings of topics could lose records or stop deliveries:',
      ...lines,
      `${remediesOf(drifts)} (docs/topics.md), then start again.`,
    ].join('\n'),
  );
}

function remediesOf(drifts: readonly Drift[]): string {
  const areCopies = drifts.map(({ remedy }) => remedy === 'reassign');
  const remedies = [
    ...(areCopies.includes(false) ? [`Mend settings with \`${COMMAND} apply\``] : []),
    ...(areCopies.includes(true) ? ['Add copies with kafka-reassign-partitions.sh'] : []),
  ];
  return remedies.join('. ');
}

function describe(drift: Drift | undefined): string {
  if (!drift) return '';
  const { topic, setting, value, wanted } = drift;
  return `${topic} has ${setting}=${value}, wanted ${wanted}`;
}

function openGauges(registry: Registry): { checked: Gauge; differing: Gauge } {
  const registers = [registry];
  return {
    checked: new Gauge({
      name: 'posthorn_kafka_topics_checked',
      help: 'Topics whose settings were compared at the start; 0 when this process may not read them.',
      registers,
    }),
    differing: new Gauge({
      name: 'posthorn_kafka_topic_settings_differing',
      help: 'Settings of topics that differed from the contract at the start (docs/topics.md).',
      registers,
    }),
  };
}

/** Topics of an installation, as Kafka describes them. */
interface FoundTopics {
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

export interface TopicWatchDeps {
  /** The topics that settings ask for. Nothing works without one of them until it is created again. */
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
   * False when an optional topic was missing in two checks: a consumer asks for all its topics together,
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
  openGauge(registry, required, missing);

  async function check(): Promise<void> {
    const existing = await readTopics();
    const areGone = optional.some((topic) => !existing.has(topic));
    isAlive = !optional.some((topic) => missing.has(topic) && !existing.has(topic));
    if (areGone) logger.warn({}, 'a delay topic of earlier settings was deleted');
    for (const topic of [...required, ...optional]) note(topic, !existing.has(topic));
  }

  function note(topic: string, isMissing: boolean): void {
    if (isMissing === missing.has(topic)) return;
    if (!isMissing) missing.delete(topic);
    else missing.add(topic);
    if (optional.includes(topic)) return;
    if (!isMissing) logger.info({ topic }, 'the topic exists again');
    else logger.error({ topic }, 'a topic was deleted: what waited in it is lost, create it again');
  }

  const loop = createLoop({ name: 'topic watch', everyMs: EVERY_MS, run: check, logger });
  return {
    start: loop.start,
    stop: () => void loop.stop(),
    tick: loop.tick,
    isAlive: () => isAlive,
  };
}

function openGauge(
  registry: Registry,
  topics: readonly string[],
  missing: ReadonlySet<string>,
): void {
  new Gauge({
    name: 'posthorn_kafka_topic_missing',
    help: '1 while a topic that this process needs does not exist, otherwise 0.',
    labelNames: ['topic'],
    registers: [registry],
    collect() {
      for (const topic of topics) this.set({ topic }, missing.has(topic) ? 1 : 0);
    },
  });
}
