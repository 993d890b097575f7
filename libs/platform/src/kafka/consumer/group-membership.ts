import type { UnreadRecords } from '../backlog/unread-records.ts';
import type { KafkaMetrics } from '../kafka-metrics.ts';
import { withTimeout } from '../../async/pause.ts';
import type { OffsetCommitter, SendCommit } from '../offsets/offset-committer.ts';
import type { OwnedPartitions } from '../offsets/owned-partitions.ts';
import type { PausedPartitions } from '../offsets/paused-partitions.ts';
import { TOGETHER, type ConsumeOptions } from '../record-log.ts';
import type { ConsumeDeps } from './consume-deps.ts';
import type { GroupEvents } from './group-client.ts';
import type { ProcessShare } from './process-share.ts';

/** What a consumer knows of its membership in the group. */
export interface Membership {
  isRunning: boolean;
  /** True once the consumer was stopped or discarded; its events are ignored from then on. */
  isOver: boolean;
  /** True while the group changes: what is begun now may be begun by another member as well. */
  isRebalancing: boolean;
  assignment: Readonly<Record<string, number[]>>;
  sendCommit: SendCommit | null;
  /** How many rounds the fetch loop has made. */
  fetches: number;
}

/** The parts of a consumer that change with its group. */
interface MemberParts {
  options: ConsumeOptions;
  offsets: OwnedPartitions;
  unread: Pick<UnreadRecords, 'retainOnly'>;
  pausedPartitions: PausedPartitions;
  metrics: KafkaMetrics;
  membership: Membership;
  committer: Pick<OffsetCommitter, 'commitNow'>;
  share: Pick<ProcessShare, 'joined'>;
}

/** The other members wait for the join of this one. */
const COMMITTED_WITHIN_MS = 1_000;

/** Handlers that keep a consumer up to date with its group. `parts` is called with each event. */
export function membershipEvents(
  parts: () => MemberParts,
  onFatal: ConsumeDeps['onFatal'],
): Omit<GroupEvents, 'onBatch'> {
  return {
    onFetch() {
      parts().membership.fetches += 1;
    },
    onRebalancing() {
      const { membership, options, committer } = parts();
      if (membership.isOver) return Promise.resolve();
      membership.isRebalancing = true;
      options.onRebalancing?.();
      // What is not committed before the join is done again by the next owner.
      return withTimeout(committer.commitNow(), COMMITTED_WITHIN_MS).catch(() => undefined);
    },
    onConfirmed() {
      // A change that came to nothing ends so: a coordinator that has just moved refuses both the
      // heartbeat and the join, and knows the group as it was when it has loaded it.
      parts().membership.isRebalancing = false;
    },
    onJoined(assignment) {
      join(parts(), assignment);
    },
    onLost() {
      const { membership, metrics } = parts();
      if (membership.isOver) return;
      leave(membership);
      metrics.restarts.inc();
    },
    onFatal(error) {
      const { membership, options } = parts();
      if (membership.isOver) return;
      leave(membership);
      onFatal(`the consumer of ${options.groupId} stopped: ${error.message}`);
    },
  };
}

function join(
  { offsets, unread, pausedPartitions, membership, metrics, options, share }: MemberParts,
  assignment: Membership['assignment'],
): void {
  if (membership.isOver) return;
  metrics.rebalances.inc();
  // Between two joins the group may have had an assignment that this member never saw.
  offsets.markAllStale();
  offsets.retainOnly(assignment);
  unread.retainOnly(assignment);
  metrics.keepLagOf(options.topics, assignment);
  pausedPartitions.resumeAll();
  membership.assignment = assignment;
  membership.isRunning = true;
  membership.isRebalancing = false;
  share.joined(options.sharing ?? TOGETHER, assignment);
  options.onAssigned?.(assignment);
}

function leave(membership: Membership): void {
  membership.isRunning = false;
  membership.sendCommit = null;
}
