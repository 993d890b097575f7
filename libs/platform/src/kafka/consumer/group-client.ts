import kafkajs, {
  type Consumer,
  type EachBatchPayload,
  type Kafka,
  type KafkaMessage,
  type OffsetsByTopicPartition,
} from 'kafkajs';
import { isOutage } from '../../async/keep-trying.ts';
import { pause } from '../../async/pause.ts';
import type { Unreadable } from '../fetch/record-batches.ts';
import { delayJoin } from '../patches/joins.ts';
import { readOnFromWhatIsLeft } from '../patches/offset-out-of-range.ts';
import type { Commit } from '../offsets/owned-partitions.ts';
import type { Pausable } from '../offsets/paused-partitions.ts';
import { byTopic, type ConsumeOptions } from '../record-log.ts';
import { createCoPartitionAssigner } from './partition-assignment.ts';

/** One member of a group. GroupConsumer decides which records are read and committed. */
export interface GroupClient extends Pausable {
  /** Joins the group and reads. Rejects when Kafka cannot be reached. */
  start: () => Promise<void>;
  /** Leaves the group and hands over nothing more. */
  leave: () => Promise<void>;
}

/** Called by a group client. None of these may throw. */
export interface GroupEvents {
  /** Called at each iteration of the fetch loop. */
  onFetch: () => void;
  /**
   * Before the member joins again, because the group is about to change. Resolves when the commit of the
   * finished records has ended, and after a second at the latest.
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

/** Sends a commit once, for the generation of the group in which its batch was read. */
export type SendCommit = (commits: readonly Commit[]) => Promise<void>;

/** Records of one partition as kafkajs hands them over: the part of its payload that is used. */
export interface FetchedBatch {
  batch: {
    topic: string;
    partition: number;
    /** The offset after the last record of the partition, in decimal digits. */
    highWatermark: string;
    /** None when the partition has only ends of transactions here, or records of aborted ones. */
    messages: readonly FetchedMessage[];
    /** Where the batch begins and ends, what is not in `messages` included. Decimal digits. */
    firstOffset: () => string | null;
    lastOffset: () => string;
  };
  /** Reading resumes after this offset. Records that are not resolved are fetched again. */
  resolveOffset: (offset: string) => void;
}

export type FetchedMessage = Pick<
  KafkaMessage,
  'offset' | 'timestamp' | 'key' | 'value' | 'headers'
> & { unreadable?: Unreadable };

/** Creates a member of a group. `report` returns the report that it sends with each join, see parseReport. */
export function createGroupClient(
  kafka: Pick<Kafka, 'consumer'>,
  options: ConsumeOptions,
  events: GroupEvents,
  report: () => Buffer,
): GroupClient {
  const { groupId, outOfRange } = options;
  if (outOfRange) readOnFromWhatIsLeft(groupId, outOfRange.cluster, outOfRange.listener);
  const left = new AbortController();
  const consumer = createConsumer(kafka, options, report, () => !left.signal.aborted);
  const member: Member = { consumer, topics: options.topics, events, left, joining: null };
  follow(member);
  return {
    start: () => join(member, () => start(member)),
    leave: () => leave(member),
    pause: (selection) => {
      consumer.pause(selection);
    },
    resume: (selection) => {
      consumer.resume(selection);
    },
    paused: () => consumer.paused(),
    seek: ({ offset, ...partition }) => {
      consumer.seek({ ...partition, offset: String(offset) });
    },
  };
}

interface Member {
  consumer: Consumer;
  topics: readonly string[];
  events: GroupEvents;
  left: AbortController;
  /** Resolves when the join that runs has ended; null while none runs. */
  joining: Promise<void> | null;
}

/** How long the partitions of a member that died stay idle before others get them. */
const SESSION_TIMEOUT_MS = 10_000;
/**
 * A member learns from a heartbeat that its group changes, and every other member waits for it meanwhile:
 * nothing is delivered for up to this time when a dispatcher comes or goes. A heartbeat is one small
 * request.
 */
const HEARTBEAT_EVERY_MS = 500;
/**
 * How long the others wait for a member that does not join again. Longer only when it has died or hangs;
 * one that lives joins again with the next change. With a time of ten seconds the start of one dispatcher
 * stopped all others for as long as the session of a dead one lasted.
 */
const REBALANCE_TIMEOUT_MS = 5_000;
/** Between a crash after which kafkajs does not restart its consumer and the restart made here. */
const RESTART_AFTER_MS = 500;

function createConsumer(
  kafka: Pick<Kafka, 'consumer'>,
  { groupId, sharing, maxWaitMs = 100 }: ConsumeOptions,
  report: () => Buffer,
  mayRestart: () => boolean,
): Consumer {
  return kafka.consumer({
    groupId,
    // A broker may create a topic that is requested, such as a deleted one, with one partition.
    allowAutoTopicCreation: false,
    partitionAssigners: [createCoPartitionAssigner(report, sharing)],
    // Heartbeats come from the fetch loop, which only hands records over.
    sessionTimeout: SESSION_TIMEOUT_MS,
    heartbeatInterval: HEARTBEAT_EVERY_MS,
    rebalanceTimeout: REBALANCE_TIMEOUT_MS,
    maxBytesPerPartition: 262_144,
    minBytes: 1,
    maxWaitTimeInMs: maxWaitMs,
    retry: {
      initialRetryTime: 100,
      maxRetryTime: 1_000,
      // The counter of the fetch loop is never reset, so a small number would end a healthy consumer.
      retries: 1_000_000,
      restartOnFailure: () => Promise.resolve(mayRestart()),
    },
  });
}

async function join(member: Member, step: () => Promise<void>): Promise<void> {
  const joining = step();
  member.joining = joining;
  try {
    await joining;
  } finally {
    // A crash during the step has begun the next one.
    if (member.joining === joining) member.joining = null;
  }
}

async function start(member: Member): Promise<void> {
  const { consumer, topics, left } = member;
  await consumer.connect();
  await consumer.subscribe({ topics: [...topics], fromBeginning: true });
  if (!left.signal.aborted) await run(member);
}

async function leave({ left, joining, consumer }: Member): Promise<void> {
  left.abort();
  // While it joins, kafkajs drops its connection without leaving the group, which waits for the member
  // until its session times out: with two groups, nothing was delivered for 20 s.
  await joining?.catch(() => undefined);
  await consumer.disconnect();
}

function follow(member: Member): void {
  const { consumer, events, left } = member;
  consumer.on(consumer.events.FETCH_START, events.onFetch);
  consumer.on(consumer.events.REBALANCING, ({ payload }) => {
    delayJoin(payload.memberId, events.onRebalancing());
  });
  consumer.on(consumer.events.HEARTBEAT, events.onConfirmed);
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    // kafkajs cannot cancel a join; this ends one of a restart that completes after the consumer has left.
    if (left.signal.aborted && !member.joining) {
      throw new kafkajs.KafkaJSNonRetriableError('joined after it had left');
    }
    events.onJoined(payload.memberAssignment);
  });
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (left.signal.aborted) return;
    if (payload.restart) events.onLost();
    else joinAgain(member, payload.error);
  });
}

/**
 * kafkajs gives up on some outages: a broker that went away during the request for the coordinator of the
 * group ended a service in four of eleven runs with two stops of Kafka each, on a busy machine.
 */
function joinAgain(member: Member, error: Error): void {
  const { events, left } = member;
  if (!isOutage(error.cause ?? error)) {
    events.onFatal(error);
    return;
  }
  events.onLost();
  const restart = async (): Promise<void> => {
    await pause(RESTART_AFTER_MS, left.signal);
    if (!left.signal.aborted) await run(member);
  };
  join(member, restart).catch((failure: unknown) => {
    if (!left.signal.aborted) joinAgain(member, failure as Error);
  });
}

function run({ consumer, events }: Member): Promise<void> {
  return consumer.run({
    autoCommit: false,
    // Offsets are resolved one by one, so that a record that is not due is fetched again.
    eachBatchAutoResolve: false,
    eachBatch: async (payload) => {
      // Also before the batch: a process that was frozen or cut off reads records that others have handled
      // meanwhile, and learns only from a heartbeat that it has lost its partitions.
      await payload.heartbeat();
      events.onBatch(payload, (commits) => commit(payload, commits));
    },
  });
}

/**
 * consumer.commitOffsets retries with the generation after a rebalance, and so commits partitions that
 * belong to another member by then. This commit is refused instead, and the next one is right.
 */
function commit(payload: EachBatchPayload, commits: readonly Commit[]): Promise<void> {
  return payload.commitOffsetsIfNecessary({ topics: byTopic(commits, offsetsOf) });
}

function offsetsOf(
  topic: string,
  commits: readonly Commit[],
): OffsetsByTopicPartition['topics'][number] {
  const partitions = commits.map(({ partition, offset }) => ({
    partition,
    offset: String(offset),
  }));
  return { topic, partitions };
}
