import type { Kafka } from 'kafkajs';
import type { Logger } from '../../service/logger.ts';
import type { SendCommit } from '../positions/commit-offsets.ts';
import type { GroupEvents, OpenGroupClient } from './group-client.ts';
import type { KafkaMetrics } from '../kafka-metrics.ts';
import type { PartitionWindow } from '../positions/partition-window.ts';
import type { Pauses } from '../positions/pauses.ts';
import type { ConsumeOptions } from '../record-log.ts';

export interface ConsumeDeps {
  /** Asks for the positions of the group. */
  kafka: Kafka;
  openGroupClient: OpenGroupClient;
  logger: Logger;
  metrics: KafkaMetrics;
  /** Called when the consumer has stopped for good and only a restart of the process helps. */
  onFatal: (reason: string) => void;
}

/** What a consumer knows of its place in the group. */
export interface Membership {
  isRunning: boolean;
  /** True once it was stopped or given up; nothing of it counts any more. */
  isOver: boolean;
  assignment: Readonly<Record<string, number[]>>;
  sendCommit: SendCommit | null;
  /** How often the fetch loop has gone round. */
  fetches: number;
}

export interface Member {
  options: ConsumeOptions;
  offsets: PartitionWindow;
  pauses: Pauses;
  metrics: KafkaMetrics;
  state: Membership;
}

/** Keeps what a member knows of its group up to date. `member` is asked for with each event. */
export function followMembership(
  member: () => Member,
  onFatal: ConsumeDeps['onFatal'],
): Omit<GroupEvents, 'onBatch'> {
  return {
    onFetch() {
      member().state.fetches += 1;
    },
    onJoined(assignment) {
      join(member(), assignment);
    },
    onLost() {
      const { state, metrics } = member();
      if (state.isOver) return;
      fallOut(state);
      metrics.restarts.inc();
    },
    onFatal(error) {
      const { state, options } = member();
      if (state.isOver) return;
      fallOut(state);
      onFatal(`the consumer of ${options.groupId} stopped: ${error.message}`);
    },
  };
}

function join(
  { offsets, pauses, state, metrics, options }: Member,
  assignment: Membership['assignment'],
): void {
  if (state.isOver) return;
  metrics.rebalances.inc();
  // Between two joins the group may have had an assignment that we never saw.
  offsets.doubtAll();
  offsets.keepOnly(assignment);
  metrics.keepLagOf(options.topics, assignment);
  pauses.forgetAll();
  state.assignment = assignment;
  state.isRunning = true;
  options.onAssigned?.();
}

function fallOut(state: Membership): void {
  state.isRunning = false;
  state.sendCommit = null;
}
