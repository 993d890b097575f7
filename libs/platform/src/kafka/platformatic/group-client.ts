import { ConnectionPool, Consumer, type ConsumerGroupJoinPayload } from '@platformatic/kafka';
import { setTimeout as wait } from 'node:timers/promises';
import { keepTrying } from '../../async/keep-trying.ts';
import { ASSIGNER_NAME, ASSIGNER_VERSION } from '../kafkajs/co-partition-assigner.ts';
import type { GroupClient, GroupEvents } from '../consumer/group-client.ts';
import type { ConsumeOptions } from '../record-log.ts';
import { assignCoPartitions } from './assigner.ts';
import type { CarrierSettings } from './carrier-settings.ts';
import { errorText } from './error-text.ts';
import { startFetchLoop, type FetchLoop, type FetchLoopDeps } from './fetch-loop.ts';
import { createPauseList, type PauseList } from './pause-list.ts';
import { retryDelayMs } from './retry-delay.ts';

interface Membership extends FetchLoopDeps {
  pauseList: PauseList;
  left: AbortController;
  reading: FetchLoop | null;
  /** True once what was read may be handed over to other members. */
  isSettled: boolean;
}

/** A broker gathers the group for up to ten seconds before it answers a join. */
const CONNECTION = { connectTimeout: 3_000, requestTimeout: 15_000 };
const CONNECT_TRIES = 5;
/**
 * From the last record to the join, in which the partitions may go to others: whoever handles records
 * tells meanwhile what it has begun, and what is finished is committed, four times a second.
 */
const SETTLE_MS = 300;

/** A member of a group on @platformatic/kafka; it agrees with members on kafkajs in one group. */
export function openGroupClient(
  settings: CarrierSettings,
  options: ConsumeOptions,
  events: GroupEvents,
): GroupClient {
  const membership = createMembership(settings, options, events);
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
  settings: CarrierSettings,
  options: ConsumeOptions,
  events: GroupEvents,
): Membership {
  const pauseList = createPauseList();
  const consumer = createConsumer(settings, options, async () => {
    await settle(membership);
    return Buffer.from(settings.instanceId);
  });
  for (const topic of options.topics) consumer.topics.track(topic);
  const membership: Membership = {
    consumer,
    connections: new ConnectionPool(settings.clientId, CONNECTION),
    maxWaitMs: options.maxWaitMs ?? 100,
    events,
    pauseList,
    isPaused: pauseList.isPaused,
    logger: settings.logger.child({ part: 'kafka', groupId: options.groupId }),
    onGrown() {
      void joinAgain(membership);
    },
    left: new AbortController(),
    reading: null,
    isSettled: true,
  };
  return membership;
}

function createConsumer(
  { clientId, brokers }: CarrierSettings,
  { groupId }: ConsumeOptions,
  tellBeforeJoin: () => Promise<Buffer>,
): Consumer {
  return new Consumer({
    ...CONNECTION,
    clientId,
    bootstrapBrokers: brokers,
    groupId,
    // How long the partitions of a member that died stay idle. Heartbeats have a timer of their own.
    sessionTimeout: 10_000,
    heartbeatInterval: 1_500,
    rebalanceTimeout: 10_000,
    protocols: [{ name: ASSIGNER_NAME, version: ASSIGNER_VERSION }],
    // The member's data, here the name of its process; asked for before each join.
    protocolsMetadata: tellBeforeJoin,
    partitionAssigner: assignCoPartitions,
    // Our own loops try again: the client would do so with what was right before the group changed.
    retries: 0,
    retryDelay: retryDelayMs,
    autocreateTopics: false,
  });
}

function follow(membership: Membership): void {
  const { consumer, logger, left } = membership;
  consumer.on('consumer:group:join', (payload) => {
    if (!left.signal.aborted) beginGeneration(membership, payload);
  });
  consumer.on('consumer:group:rebalance', () => void membership.reading?.stop());
  // The client tells so that it could not join again after the group had changed, and then rests.
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
  const places = assignments.flatMap(({ topic, partitions }) =>
    partitions.map((partition) => ({ topic, partition })),
  );
  membership.isSettled = false;
  membership.reading = startFetchLoop(membership, { memberId, generationId }, places, before);
}

async function settle(membership: Membership): Promise<void> {
  if (membership.isSettled) return;
  const { signal } = membership.left;
  // A commit of the old generation is taken as long as this member has not asked to join again.
  await Promise.all([
    membership.reading?.stop(),
    wait(SETTLE_MS, undefined, { signal }).catch(() => undefined),
  ]);
  membership.isSettled = true;
}

async function start(membership: Membership): Promise<void> {
  const { consumer, left } = membership;
  if (left.signal.aborted) return;
  await consumer.metadata({ topics: consumer.topics.current, retries: CONNECT_TRIES });
  await join(membership);
}

async function joinAgain(membership: Membership): Promise<void> {
  void membership.reading?.stop();
  await join(membership);
}

/** Tries until it is a member or has left; what a broker refuses now it may take a moment later. */
async function join(membership: Membership): Promise<void> {
  const { consumer, events, left, logger } = membership;
  const { signal } = left;
  const onFailure = (error: unknown, tryNumber: number): void => {
    if (signal.aborted) return;
    logger.warn({ error: errorText(error) }, 'did not join the group yet');
    // A first try fails easily while others join too, and costs no more than a second one.
    if (tryNumber === 2 && membership.reading) events.onLost();
  };
  const step = async (): Promise<void> => {
    if (!signal.aborted) await consumer.joinGroup();
  };
  await keepTrying(step, { signal, onFailure }).catch(() => undefined);
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
