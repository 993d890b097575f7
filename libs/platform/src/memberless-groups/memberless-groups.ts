import type { ConsumerGroup } from '@posthorn/domain/records/consumer-groups.ts';
import type { Admin, Kafka } from 'kafkajs';
import { Gauge, type Registry } from 'prom-client';
import { createLoop } from '../async/loop.ts';
import { withTimeout } from '../async/with-timeout.ts';
import type { Logger } from '../service/logger.ts';
import { closeAdmin } from '../kafka/connection/connect.ts';
import { createGroupPositions, type GroupPositions } from '../kafka/offsets/group-positions.ts';
import { readBacklog, type TopicBacklog } from './topic-backlog.ts';

export interface MemberlessGroupsDeps {
  kafka: Kafka;
  groups: readonly ConsumerGroup[];
  /** How long after it was written a record of the topic is ready, in milliseconds; 0 for at once. */
  readyAfterMs: (topic: string) => number;
  registry: Registry;
  logger: Pick<Logger, 'warn'>;
  nowMs: () => number;
}

export interface MemberlessGroups {
  start: () => void;
  /** Waits for nothing that runs. */
  stop: () => void;
  /** One look; `start` takes one every five seconds. */
  tick: () => Promise<void>;
}

interface Watched {
  group: ConsumerGroup;
  /** Null while the group has members. */
  positions: GroupPositions | null;
  /** By topic; empty while the group has members. */
  backlogs: ReadonlyMap<string, TopicBacklog>;
}

const EVERY_MS = 5_000;
const TIMEOUT_MS = 10_000;
const RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 2 };

/**
 * Shows the backlog of groups without members: nobody owns their partitions, so no member can show it.
 * While every group has members this costs one request for each of them.
 */
export function createMemberlessGroups(deps: MemberlessGroupsDeps): MemberlessGroups {
  const { kafka, logger } = deps;
  const watched = deps.groups
    .filter(({ topics }) => topics.length > 0)
    .map((group): Watched => ({ group, positions: null, backlogs: new Map() }));
  showBacklogs(deps, watched);
  const admin = kafka.admin({ retry: RETRY });
  let isStopped = false;
  const loop = createLoop({
    name: 'groups without members',
    everyMs: EVERY_MS,
    run: () => look(deps, admin, watched, () => isStopped),
    logger,
  });
  return {
    start() {
      loop.start();
      void loop.tick();
    },
    stop() {
      isStopped = true;
      void loop.stop();
      void closeAdmin(admin);
      for (const { positions } of watched) void positions?.close();
    },
    tick: loop.tick,
  };
}

async function look(
  deps: MemberlessGroupsDeps,
  admin: Admin,
  watched: readonly Watched[],
  isStopped: () => boolean,
): Promise<void> {
  const ids = watched.map(({ group }) => group.groupId);
  const described = admin.connect().then(() => admin.describeGroups(ids));
  const { groups } = await withTimeout(described, TIMEOUT_MS);
  const withMembers = new Set(
    groups.filter(({ members }) => members.length > 0).map(({ groupId }) => groupId),
  );
  for (const each of watched) {
    if (isStopped()) return;
    if (!withMembers.has(each.group.groupId)) {
      each.positions ??= createGroupPositions(deps.kafka, each.group);
      each.backlogs = await readBacklogs(deps, each, each.positions);
    } else if (each.positions) {
      void each.positions.close();
      Object.assign(each, { positions: null, backlogs: new Map() });
    }
  }
}

async function readBacklogs(
  { readyAfterMs, nowMs }: MemberlessGroupsDeps,
  { group, backlogs }: Watched,
  positions: GroupPositions,
): Promise<ReadonlyMap<string, TopicBacklog>> {
  const found = await positions.read();
  const read = new Map<string, TopicBacklog>();
  for (const topic of group.topics) {
    const backlog = await readBacklog({
      positions: found.filter((position) => position.topic === topic),
      endsBefore: (beforeMs) => positions.endsBefore(topic, beforeMs),
      readyAfterMs: readyAfterMs(topic),
      before: backlogs.get(topic) ?? null,
      nowMs: nowMs(),
    });
    read.set(topic, backlog);
  }
  return read;
}

/** Shows what was found, at each scrape. */
export function showBacklogs(
  { registry, nowMs }: Pick<MemberlessGroupsDeps, 'registry' | 'nowMs'>,
  watched: readonly Watched[],
): void {
  const gauge = (
    name: string,
    help: string,
    valueOf: (backlog: TopicBacklog | undefined) => number,
  ): void => {
    new Gauge({
      name,
      help,
      labelNames: ['group', 'topic'],
      registers: [registry],
      collect() {
        for (const { group, backlogs } of watched) {
          for (const topic of group.topics) {
            this.set({ group: group.groupId, topic }, valueOf(backlogs.get(topic)));
          }
        }
      },
    });
  };
  gauge(
    'posthorn_group_backlog_records',
    'Records that a consumer group without members would have to read now; 0 while it has members, which show posthorn_ready_records. Every gateway shows the same: take the highest.',
    (backlog) => backlog?.records ?? 0,
  );
  gauge(
    'posthorn_group_oldest_age_seconds',
    'Time since the oldest record of posthorn_group_backlog_records became ready, to 2 %; 0 when there is none. Take the highest of all gateways.',
    (backlog) => (backlog?.oldestReadyMs == null ? 0 : (nowMs() - backlog.oldestReadyMs) / 1_000),
  );
}
