import type { SendCommit } from '../offsets/offset-committer.ts';
import type { Pausable } from '../offsets/paused-partitions.ts';
import type { ConsumeOptions } from '../record-log.ts';
import type { FetchedBatch } from './fetched-batch.ts';

/** One member of a group. What to read and what to commit is decided above it. */
export interface GroupClient extends Pausable {
  /** Joins the group and reads. Rejects when Kafka cannot be reached. */
  start: () => Promise<void>;
  /** Leaves the group and hands over nothing more. */
  leave: () => Promise<void>;
}

/** Called by a group client. None of these may throw. */
export interface GroupEvents {
  /** At each round of the fetch loop. */
  onFetch: () => void;
  /**
   * Before the member asks to join again, because the group is to change. Resolves when the commit of what is finished
   * has ended, and after a second at the latest.
   */
  onRebalancing: () => Promise<void>;
  /** The broker has answered a heartbeat: this is a member, and its group does not change now. */
  onConfirmed: () => void;
  /** Each time the group has changed. `assignment`: topic → partitions that this member owns now. */
  onJoined: (assignment: Readonly<Record<string, number[]>>) => void;
  /** `sendCommit` is refused once the group has changed. */
  onBatch: (batch: FetchedBatch, sendCommit: SendCommit) => void;
  /** The member fell out of its group and joins again by itself. */
  onLost: () => void;
  /** The member fell out of its group for good. */
  onFatal: (error: Error) => void;
}

/** `report` returns what the member sends with each join, for the assignment. */
export type OpenGroupClient = (
  options: ConsumeOptions,
  events: GroupEvents,
  report: () => Buffer,
) => GroupClient;
