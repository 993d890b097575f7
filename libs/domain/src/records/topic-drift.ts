import {
  coPartitionedTopics,
  judgeSetting,
  type Severity,
  TOPIC_SETTINGS,
  type TopicNames,
  type TopicSetting,
  type TopicSpec,
  wantedSettings,
} from './topics.ts';

/** A topic as Kafka describes it. */
export interface ObservedTopic {
  name: string;
  partitions: number;
  /** Copies of the partition that has the fewest. */
  replication: number;
  settings: ReadonlyMap<string, ObservedSetting>;
}

export interface ObservedSetting {
  value: string;
  /** False for a default of the brokers, whose change would silently affect this topic. */
  isPinned: boolean;
}

/** The remedy of a difference. `add-partitions` and `reassign` are procedures, see docs/topics.md. */
export type Remedy = 'apply' | 'apply-force' | 'add-partitions' | 'reassign';

/** A difference between a topic and its required settings. */
export interface Drift {
  topic: string;
  setting: TopicSetting | 'partitions' | 'replication';
  value: string;
  wanted: string;
  severity: Severity;
  meaning: string;
  remedy: Remedy;
}

/** Returns all settings with a harmful difference. Missing topics are skipped. */
export function findSettingDrift(
  specs: readonly TopicSpec[],
  observed: readonly ObservedTopic[],
): Drift[] {
  return pairs(specs, observed).flatMap(([spec, topic]) =>
    TOPIC_SETTINGS.flatMap((setting) => driftOf(spec, topic, setting) ?? []),
  );
}

function driftOf(spec: TopicSpec, topic: ObservedTopic, setting: TopicSetting): Drift | null {
  const value = topic.settings.get(setting)?.value;
  // Brokers of an earlier version may not have the setting.
  if (value === undefined) return null;
  const replicated = { spec, replication: topic.replication };
  const judgement = judgeSetting(setting, value, replicated);
  if (judgement === null) return null;
  const wanted = wantedSettings(replicated)[setting];
  const remedy = isLowered(setting, value, wanted) ? 'apply-force' : 'apply';
  return { topic: topic.name, setting, value, wanted, ...judgement, remedy };
}

/**
 * A shorter retention deletes records at once, and fewer copies in sync protect less than the operator has required.
 */
function isLowered(setting: TopicSetting, value: string, wanted: string): boolean {
  if (setting === 'retention.ms') return Number(value) < 0 || Number(wanted) < Number(value);
  return setting === 'min.insync.replicas' && Number(wanted) < Number(value);
}

/** A setting with the required value, but as a default of the brokers. */
export interface Unpinned {
  topic: string;
  setting: TopicSetting;
  value: string;
}

/** Returns the settings whose required values come from the defaults of the brokers. */
export function findUnpinned(
  specs: readonly TopicSpec[],
  observed: readonly ObservedTopic[],
): Unpinned[] {
  return pairs(specs, observed).flatMap(([spec, { name: topic, replication, settings }]) => {
    const wanted = wantedSettings({ spec, replication });
    return TOPIC_SETTINGS.flatMap((setting) => {
      const { value, isPinned } = settings.get(setting) ?? { value: null, isPinned: true };
      return isPinned || value !== wanted[setting] ? [] : { topic, setting, value };
    });
  });
}

/** The layout of a new topic according to the settings. */
export interface TopicLayout {
  partitions: number;
  replication: number;
}

/** Returns the topics that have other numbers of partitions, or fewer copies, than a new one would get. */
export function findLayoutDrift(
  names: TopicNames,
  observed: readonly ObservedTopic[],
  layout: TopicLayout,
): Drift[] {
  const together = new Set(coPartitionedTopics(names));
  const counts = observed.filter(({ name }) => together.has(name)).map((each) => each.partitions);
  const areEqual = new Set(counts).size <= 1;
  return observed.flatMap((topic) => [
    ...partitionDrift(topic, layout.partitions, !areEqual && together.has(topic.name)),
    ...copyDrift(topic, layout.replication, mostCopies(observed)),
  ]);
}

/** Returns the topics with fewer copies than another one: they were created or changed by other means. */
export function findCopyDrift(observed: readonly ObservedTopic[]): Drift[] {
  const most = mostCopies(observed);
  return observed.flatMap((topic) => copyDrift(topic, most, most));
}

function mostCopies(observed: readonly ObservedTopic[]): number {
  return Math.max(0, ...observed.map(({ replication }) => replication));
}

function partitionDrift(
  { name, partitions }: ObservedTopic,
  wanted: number,
  isUnequal: boolean,
): Drift[] {
  if (partitions === wanted && !isUnequal) return [];
  return [
    {
      topic: name,
      setting: 'partitions',
      value: String(partitions),
      wanted: String(wanted),
      severity: isUnequal ? 'refuse' : 'warn',
      meaning: isUnequal
        ? 'message-created, retry-due and slow-lane must have the same number'
        : 'TOPIC_PARTITIONS is another number',
      remedy: 'add-partitions',
    },
  ];
}

/** One copy is refused only beside topics with more: an installation may have one broker. */
function copyDrift({ name, replication }: ObservedTopic, wanted: number, most: number): Drift[] {
  if (replication >= wanted) return [];
  const isOnlyCopy = replication === 1 && most > 1;
  return [
    {
      topic: name,
      setting: 'replication',
      value: String(replication),
      wanted: String(wanted),
      severity: isOnlyCopy ? 'refuse' : 'warn',
      meaning: isOnlyCopy
        ? 'records are lost with one broker, and other topics have more copies'
        : 'records are lost with fewer brokers than wanted',
      remedy: 'reassign',
    },
  ];
}

function pairs(
  specs: readonly TopicSpec[],
  observed: readonly ObservedTopic[],
): [TopicSpec, ObservedTopic][] {
  const byName = new Map(observed.map((topic) => [topic.name, topic]));
  return specs.flatMap((spec) => {
    const topic = byName.get(spec.name);
    return topic ? [[spec, topic] as [TopicSpec, ObservedTopic]] : [];
  });
}

/** Settings to be written. */
export interface TopicChange {
  topic: string;
  settings: Partial<Record<TopicSetting, string>>;
}

export interface TopicPlan {
  /** The settings to be written, topic by topic. */
  changes: TopicChange[];
  /** The differences that are not applied without force, because records or protection could be lost. */
  held: Drift[];
  /** The differences that settings cannot remedy: partitions and copies. */
  byHand: Drift[];
}

/** Plans the changes that give topics their required settings. Defaults of the brokers are written too. */
export function planTopicChanges(
  drifts: readonly Drift[],
  unpinned: readonly Unpinned[],
  { force }: { force: boolean },
): TopicPlan {
  const plan: TopicPlan = { changes: [], held: [], byHand: [] };
  const byTopic = new Map<string, TopicChange>();
  const write = (topic: string, setting: TopicSetting, value: string): void => {
    const change = byTopic.get(topic) ?? { topic, settings: {} };
    change.settings[setting] = value;
    byTopic.set(topic, change);
  };
  for (const drift of drifts) {
    const { topic, setting, wanted, remedy } = drift;
    if (setting === 'partitions' || setting === 'replication') plan.byHand.push(drift);
    else if (remedy === 'apply-force' && !force) plan.held.push(drift);
    else write(topic, setting, wanted);
  }
  for (const { topic, setting, value } of unpinned) write(topic, setting, value);
  plan.changes.push(...byTopic.values());
  return plan;
}
