import type { SendCommit } from '../positions/commit-offsets.ts';
import type { FetchedBatch } from './fetched-batch.ts';
import type { OutgoingRecord, ConsumeOptions } from '../record-log.ts';
import type { Pausable } from '../positions/pauses.ts';

/** One member of a group, by whichever client of Kafka; the rules of reading lie above it. */
export interface GroupClient extends Pausable {
  /** Joins the group and reads; rejects when Kafka cannot be reached. */
  start: () => Promise<void>;
  /** Leaves the group and hands over nothing more. */
  leave: () => Promise<void>;
}

/** What a member of a group is told; none of these may throw. */
export interface GroupEvents {
  /** Each time the fetch loop goes round. */
  onFetch: () => void;
  /** Each time the group has changed: topic → partitions that are ours from now on. */
  onJoined: (assignment: Readonly<Record<string, number[]>>) => void;
  /** `sendCommit` is refused once the group has changed. */
  onBatch: (batch: FetchedBatch, sendCommit: SendCommit) => void;
  /** The member fell out of its group and joins again by itself. */
  onLost: () => void;
  /** It fell out for good. */
  onFatal: (error: Error) => void;
}

export type OpenGroupClient = (options: ConsumeOptions, events: GroupEvents) => GroupClient;

/** Sends records of any topics; the caller cuts them to what a broker takes at once. */
export interface RecordSender {
  /** Resolves when every in-sync replica has all of them; on a rejection some may be stored. */
  send: (records: readonly OutgoingRecord[]) => Promise<void>;
  close: () => Promise<void>;
}

/** The client that carries the records. The administration of topics and groups stays with kafkajs. */
export interface RecordCarrier {
  /** Rejects when Kafka cannot be reached. */
  connectSender: () => Promise<RecordSender>;
  openGroupClient: OpenGroupClient;
}
