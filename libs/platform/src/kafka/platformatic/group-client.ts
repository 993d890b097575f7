import { ConnectionPool, Consumer, type ConsumerGroupJoinPayload } from '@platformatic/kafka';
import { createKeepTrying, StoppedError, type KeepTrying } from '../../async/keep-trying.ts';
import { pause } from '../../async/pause.ts';
import { ASSIGNER_NAME, ASSIGNER_VERSION } from '../kafkajs/co-partition-assigner.ts';
import type { GroupClient, GroupEvents } from '../consumer/group-client.ts';
import {
  HEARTBEAT_EVERY_MS,
  MEMBER_FOR_MS,
  REBALANCE_TIMEOUT_MS,
  SESSION_TIMEOUT_MS,
} from '../consumer/group-timing.ts';
import type { ConsumeOptions } from '../record-log.ts';
import { createAssigner } from './assigner.ts';
import type { DriverSettings } from './driver-settings.ts';
import { securityOf } from './connection-options.ts';
import { errorText } from './error-text.ts';
import { startFetchLoop, type FetchLoop, type FetchLoopDeps } from './fetch-loop.ts';
import { createPauseList, type PauseList } from './pause-list.ts';
import { retryDelayMs } from './retry-delay.ts';

interface Membership extends FetchLoopDeps {
  pauseList: PauseList;
  left: AbortController;
  reading: FetchLoop | null;
  /** When the broker answered the last heartbeat or join, by the monotonic clock. */
  confirmedAtMs: number;
  /** True once the partitions read here may go to other members. */
  hasWaited: boolean;
  keepTrying: KeepTrying;
}

/** A broker waits for the whole group for up to ten seconds before it answers a join. */
const CONNECTION = { connectTimeout: 3_000, requestTimeout: 15_000 };
const CONNECT_TRIES = 5;
/**
 * Time between the last record and the join, in which the partitions may go to others. Meanwhile the
 * handlers announce what they have begun, and what is finished is committed, four times a second.
 */
const OLD_WORK_MS = 300;

/** Opens a member of a group on @platformatic/kafka. Members on kafkajs may be in the same group. */
export function openGroupClient(
  settings: DriverSettings,
  options: ConsumeOptions,
  events: GroupEvents,
  report: () => Buffer,
): GroupClient {
  const membership = createMembership(settings, options, events, report);
  const { pauseList } = membership;
  follow(membership);
  return {
    start: () => start(membership),
    leave: () => leave(membership),
    pause: pauseList.pause,
    resume: pauseList.resume,
    paused: pauseList.paused,
  };
}

function createMembership(
  settings: DriverSettings,
  options: ConsumeOptions,
  events: GroupEvents,
  report: () => Buffer,
): Membership {
  const pauseList = createPauseList();
  const left = new AbortController();
  const logger = settings.logger.child({ part: 'kafka', groupId: options.groupId });
  const describeError = (error: unknown): object => ({ error: errorText(error) });
  const consumer = createConsumer(settings, options, async () => {
    await waitForOldWork(membership);
    return report();
  });
  for (const topic of options.topics) consumer.topics.track(topic);
  const membership: Membership = {
    consumer,
    connections: new ConnectionPool(settings.clientId, {
      ...CONNECTION,
      ...securityOf(settings.access),
    }),
    maxWaitMs: options.maxWaitMs ?? 100,
    events,
    pauseList,
    isPaused: pauseList.isPaused,
    isConfirmed: () => performance.now() - membership.confirmedAtMs < MEMBER_FOR_MS,
    confirmedAtMs: -Infinity,
    logger,
    onPartitionsAdded() {
      void joinAgain(membership);
    },
    left,
    keepTrying: createKeepTrying({ logger, signal: left.signal, describeError }),
    reading: null,
    hasWaited: true,
  };
  return membership;
}

function createConsumer(
  { clientId, access }: DriverSettings,
  { groupId, sharing }: ConsumeOptions,
  metadataForJoin: () => Promise<Buffer>,
): Consumer {
  return new Consumer({
    ...CONNECTION,
    clientId,
    bootstrapBrokers: access.brokers,
    ...securityOf(access),
    groupId,
    // Heartbeats have a timer of their own.
    sessionTimeout: SESSION_TIMEOUT_MS,
    heartbeatInterval: HEARTBEAT_EVERY_MS,
    // The client refuses a shorter one.
    rebalanceTimeout: Math.max(REBALANCE_TIMEOUT_MS, SESSION_TIMEOUT_MS),
    protocols: [{ name: ASSIGNER_NAME, version: ASSIGNER_VERSION }],
    // The user data of the member; called before each join.
    protocolsMetadata: metadataForJoin,
    partitionAssigner: createAssigner(sharing),
    // The loops here retry: the client would repeat a request from before the group changed.
    retries: 0,
    retryDelay: retryDelayMs,
    autocreateTopics: false,
  });
}

function follow(membership: Membership): void {
  const { consumer, events, logger, left } = membership;
  const confirm = (): void => {
    membership.confirmedAtMs = performance.now();
    events.onConfirmed();
  };
  consumer.on('consumer:heartbeat:end', confirm);
  consumer.on('consumer:group:join', (payload) => {
    confirm();
    if (!left.signal.aborted) beginGeneration(membership, payload);
  });
  consumer.on('consumer:group:rebalance', () => {
    void membership.reading?.stop();
    // The wait before the join is long enough for a commit.
    void events.onRebalancing();
  });
  // The client reports so that it could not join again after the group had changed, and then does nothing.
  consumer.on('error', (error: unknown) => {
    if (left.signal.aborted) return;
    logger.info({ error: errorText(error) }, 'the group changed meanwhile, joining again');
    void joinAgain(membership);
  });
}

function beginGeneration(
  membership: Membership,
  { memberId, assignments = [] }: ConsumerGroupJoinPayload,
): void {
  const { generationId } = membership.consumer;
  const before = membership.reading?.stop();
  membership.events.onJoined(
    Object.fromEntries(assignments.map(({ topic, partitions }) => [topic, partitions])),
  );
  const topicPartitions = assignments.flatMap(({ topic, partitions }) =>
    partitions.map((partition) => ({ topic, partition })),
  );
  membership.hasWaited = false;
  membership.reading = startFetchLoop(
    membership,
    { memberId, generationId },
    topicPartitions,
    before,
  );
}

async function waitForOldWork(membership: Membership): Promise<void> {
  if (membership.hasWaited) return;
  const { signal } = membership.left;
  // A commit of the old generation is taken as long as this member has not asked to join again.
  await Promise.all([membership.reading?.stop(), pause(OLD_WORK_MS, signal)]);
  membership.hasWaited = true;
}

async function start(membership: Membership): Promise<void> {
  const { consumer, left } = membership;
  if (left.signal.aborted) return;
  await consumer.metadata({ topics: consumer.topics.current, retries: CONNECT_TRIES });
  await join(membership);
}

async function joinAgain(membership: Membership): Promise<void> {
  void membership.reading?.stop();
  await join(membership).catch((error: unknown) => {
    membership.events.onFatal(error instanceof Error ? error : new Error(String(error)));
  });
}

/**
 * Resolves when it is a member or has left: what a broker refuses now it may accept a moment later.
 * Rejects with what is no outage.
 */
async function join(membership: Membership): Promise<void> {
  const { consumer, events, left, keepTrying } = membership;
  let failures = 0;
  const hasLeft = (): boolean => left.signal.aborted;
  const step = async (): Promise<void> => {
    if (hasLeft()) return;
    try {
      await consumer.joinGroup();
    } catch (error) {
      failures += 1;
      // A first join fails easily while others join too, and costs no more than a second one.
      if (failures === 2 && membership.reading && !hasLeft()) events.onLost();
      throw error;
    }
  };
  await keepTrying('join the group', step).catch((error: unknown) => {
    if (!(error instanceof StoppedError) && !hasLeft()) throw error;
  });
}

async function leave({ consumer, connections, left, reading }: Membership): Promise<void> {
  left.abort();
  void reading?.stop();
  try {
    await consumer.close();
  } finally {
    await Promise.all([connections.close(), consumer.connections.close()]);
  }
}
