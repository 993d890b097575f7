import { randomUUID } from 'node:crypto';
import { createKafkaClient } from '@posthorn/platform/kafka/connect.ts';
import { createTopics } from '@posthorn/platform/kafka/change-topics.ts';
import {
  createGroupClient,
  type GroupClient,
  type GroupEvents,
} from '@posthorn/platform/kafka/consumer/group-client.ts';
import { createKafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import {
  createKafkaRecordLog,
  type KafkaRecordLog,
} from '@posthorn/platform/kafka/kafka-record-log.ts';
import type { Commit } from '@posthorn/platform/kafka/offsets/owned-partitions.ts';
import type {
  ConsumeOptions,
  Consumption,
  RecordLog,
} from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { Kafka } from 'kafkajs';
import { Registry } from 'prom-client';
import { createNamespace } from '../process/namespace.ts';
import { sampleTopicSpec } from '../samples/sample-topic-spec.ts';

export interface ScratchLog {
  kafka: Kafka;
  records: KafkaRecordLog;
  /** Opens the log of another process. */
  openAnother: () => Promise<KafkaRecordLog>;
  /** Makes a topic in a namespace of its own, with three partitions unless another number is given. */
  newTopic: (name: string, partitions?: number) => Promise<string>;
  /** The metrics of `records` and of the logs opened after it. */
  registry: Registry;
  /** Publishes an empty record for each key. */
  publish: (topic: string, keys: readonly string[]) => Promise<void>;
  /** Reads the topic as a member of `<topic>-group`, and returns the member. */
  consume: (
    topic: string,
    handle: ConsumeOptions['handle'],
    more?: MemberOptions,
  ) => Promise<Consumption>;
  /** Stops every member: one left behind by a failed test would keep the whole run from ending. */
  stopMembers: () => Promise<void>;
  /** Closes every log. */
  close: () => Promise<void>;
}

interface MemberOptions extends Partial<ConsumeOptions> {
  /** `records` unless given. */
  log?: RecordLog;
}

export interface ScratchOptions {
  /** Those of the stack unless given. */
  brokers?: string[];
  /** Is given every member of a group that the logs open. */
  onMember?: (member: GroupClient) => void;
  /** Is given what Kafka took of each commit. */
  onCommit?: (commits: readonly Commit[]) => void;
}

/** A record log on the real broker. */
export async function openScratchLog(options: ScratchOptions = {}): Promise<ScratchLog> {
  const env = createNamespace();
  const brokers = options.brokers ?? [env.KAFKA_BROKERS];
  const logger = createLogger('test', 'silent');
  const registry = new Registry();
  const metrics = createKafkaMetrics(registry, Date.now);
  const kafka = createKafkaClient('posthorn-test', { brokers }, logger);
  const logs: RecordLog[] = [];
  const open = async (client: Kafka): Promise<KafkaRecordLog> => {
    const log = await createKafkaRecordLog({
      kafka: client,
      instanceId: randomUUID(),
      openGroupClient: showing(options),
      logger,
      metrics,
      nowMs: Date.now,
      onFatal: (reason) => {
        throw new Error(reason);
      },
    });
    logs.push(log);
    return log;
  };
  const records = await open(kafka);
  const members: Consumption[] = [];
  return {
    kafka,
    records,
    openAnother: () => open(createKafkaClient('posthorn-test', { brokers }, logger)),
    newTopic: async (name, partitions = 3) => {
      const topic = env.TOPIC_PREFIX + name;
      const layout = { partitions, replication: 1 };
      await createTopics(kafka, [sampleTopicSpec(topic)], layout, logger);
      return topic;
    },
    registry,
    publish: (topic, keys) =>
      records.publish(keys.map((key) => ({ topic, key, value: Buffer.alloc(0) }))),
    async consume(topic, handle, { log = records, ...more } = {}) {
      const inFlightLimits = { pauseAt: 1_000, resumeAt: 500 };
      const group = { groupId: `${topic}-group`, topics: [topic] };
      const member = await log.consume({ ...group, handle, inFlightLimits, ...more });
      members.push(member);
      return member;
    },
    async stopMembers() {
      await Promise.all(members.splice(0).map((member) => member.stop(1_000)));
    },
    async close() {
      await Promise.all(logs.map((log) => log.close()));
    },
  };
}

/** Creates members of groups and reports them and their commits to the test. */
function showing({ onMember, onCommit }: ScratchOptions): typeof createGroupClient {
  return (kafka, options, events, report) => {
    const shown: GroupEvents = {
      ...events,
      onBatch(batch, sendCommit) {
        events.onBatch(batch, async (commits) => {
          await sendCommit(commits);
          onCommit?.(commits);
        });
      },
    };
    const member = createGroupClient(kafka, options, shown, report);
    onMember?.(member);
    return member;
  };
}
