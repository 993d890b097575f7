import { createLoop, type Loop } from '../../async/loop.ts';
import type { Logger } from '../../service/logger.ts';
import type { Sharing } from '../record-log.ts';
import type { TopicPartition } from '../topic-partition.ts';
import { encodeReport } from './partition-assignment.ts';

/**
 * The partitions of this process where it shares them `together`. Its member of that group sets them, and every member
 * reports them that is to have the same.
 */
export interface ProcessShare {
  /** What a member of a group with this sharing sends when it joins. */
  reportFor: (sharing: Sharing) => Buffer;
  /** To be called when a member has got its partitions. */
  joined: (sharing: Sharing, assignment: Readonly<Record<string, readonly number[]>>) => void;
  /** True when these partitions are not among those of the process. */
  isAstray: (partitions: readonly TopicPartition[]) => boolean;
}

/** `instanceId` names this process; the members of a group are ordered by it. */
export function createProcessShare(instanceId: string): ProcessShare {
  /** Null until the first assignment. In the order in which they came. */
  let held: readonly number[] | null = null;
  return {
    reportFor: ({ kind }) => encodeReport(instanceId, kind === 'evenly' ? null : (held ?? [])),
    joined({ kind }, assignment) {
      if (kind !== 'together') return;
      const own = new Set(Object.values(assignment).flat());
      const kept = (held ?? []).filter((partition) => own.delete(partition));
      held = [...kept, ...own];
    },
    isAstray(partitions) {
      if (held === null) return false;
      const own = new Set(held);
      return partitions.some(({ partition }) => !own.has(partition));
    },
  };
}

/** Longer than a change of both groups takes. */
const CHECK_EVERY_MS = 10_000;

interface StrayWatchDeps {
  share: Pick<ProcessShare, 'isAstray'>;
  consumer: () => { isRunning: () => boolean; assigned: () => TopicPartition[] };
  /** Joins the group anew: its leader hears from all members then what they have. */
  replaceConsumer: () => Promise<void>;
  logger: Logger;
}

/**
 * Watches a member that is to have the same partitions as the process has in another group. Both groups come to the
 * same result when they see the same changes; when two changes are one for one of them, they may not.
 */
export function createStrayWatch({
  share,
  consumer,
  replaceConsumer,
  logger,
}: StrayWatchDeps): Loop {
  let wasAstray = false;
  return createLoop({
    name: 'stray partitions',
    everyMs: CHECK_EVERY_MS,
    logger,
    async run() {
      const isAstray = consumer().isRunning() && share.isAstray(consumer().assigned());
      const mustMove = isAstray && wasAstray;
      wasAstray = isAstray && !mustMove;
      if (!mustMove) return;
      logger.warn({}, 'the partitions differ from those of the other group, joining anew');
      await replaceConsumer();
    },
  });
}
