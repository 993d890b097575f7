import type { TopicSetting } from './topic-settings.ts';
import type { Drift, Unpinned } from './topic-drift.ts';

/** Settings to be written. */
export interface TopicChange {
  topic: string;
  settings: Partial<Record<TopicSetting, string>>;
}

export interface TopicPlan {
  /** What is to be written, topic by topic. */
  changes: TopicChange[];
  /** What is not written without force, because records or protection could be lost with it. */
  held: Drift[];
  /** What settings cannot mend: partitions and copies. */
  byHand: Drift[];
}

/** Decides what brings topics to their contract. Settings that are not pinned are written with the others. */
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
