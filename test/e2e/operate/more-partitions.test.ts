import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createKafkaClient, readTopics } from '@posthorn/platform/kafka/connect.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { Kafka } from 'kafkajs';
import { ADMIN, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { runProgram, startProgram } from '../../support/process/service-process.ts';
import { sendMany, untilDelivered } from '../../support/process/traffic.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

const WITHIN_MS = 60_000;
const ADD = 'deploy/setup/add-partitions.ts';
const CO_PARTITIONED = ['message-created', 'retry-due', 'slow-lane'];

describe('Topics that get more partitions', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;
  let kafka: Kafka;
  let webhookIds: string[];

  beforeAll(async () => {
    posthorn = await startPosthorn({ TOPIC_PARTITIONS: '2', RETRY_DELAYS: '1s,2s' });
    const { KAFKA_BROKERS } = posthorn.env;
    const logger = createLogger('test', 'silent');
    kafka = createKafkaClient('posthorn-test', { brokers: KAFKA_BROKERS.split(',') }, logger);
    receiver = await startReceiver();
    const making = Array.from({ length: 12 }, () => posthorn.api.createTarget(receiver.url));
    webhookIds = (await Promise.all(making)).map(({ webhookId }) => webhookId);
  }, 120_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  const countsOf = async (topics: readonly string[]): Promise<Set<number | undefined>> => {
    const existing = await readTopics(kafka);
    return new Set(topics.map((topic) => existing.get(posthorn.env.TOPIC_PREFIX + topic)));
  };
  const addPartitions = (count: number): Promise<string> =>
    runProgram(ADD, [], { ...posthorn.env, TOPIC_PARTITIONS: String(count) });

  it('keep what they have while they are read, or when the number does not fit', async () => {
    await expect(addPartitions(4)).rejects.toThrow('have members. Stop all dispatchers');
    await expect(addPartitions(3)).rejects.toThrow('3 is no multiple of that');
    expect(await countsOf(CO_PARTITIONED)).toEqual(new Set([2]));
  });

  it('deliver what was accepted, parked and deferred before, and what comes afterwards, once', async () => {
    receiver.answerWith(failing(1));
    const before = await sendMany(posthorn.api, webhookIds, 3);
    await eventually('first attempts', () => receiver.received.length >= 36, WITHIN_MS);
    const second = await posthorn.start('dispatcher');
    await Promise.all([second.stop(), posthorn.dispatcher.stop(), posthorn.retry.stop()]);
    const meanwhile = await sendMany(posthorn.api, webhookIds, 1);

    const topics = await readTopics(kafka);
    const own = [...topics.keys()].filter((name) => name.startsWith(posthorn.env.TOPIC_PREFIX));
    expect(await addPartitions(4)).toContain(
      `${own.length} topics with 4 partitions, ${own.length} of them raised`,
    );
    const settings = { ...posthorn.env, TOPIC_PARTITIONS: '4' };
    expect(await runProgram(ADMIN, ['topics', 'check'], settings)).toContain(', 0 differences');
    await Promise.all([
      posthorn.start('dispatcher'),
      posthorn.start('dispatcher'),
      posthorn.start('retry'),
      posthorn.start('gateway', { PORT: '0' }),
    ]);
    const after = await sendMany(posthorn.api, webhookIds, 3);
    const sent = [...before, ...meanwhile, ...after];
    await untilDelivered(posthorn.api, sent, WITHIN_MS);
    // Each had one failure.
    const times = sent.map(({ messageId }) => receiver.of(messageId).length);
    expect(new Set(times)).toEqual(new Set([2]));
  }, 180_000);

  it('stop a service from starting while their numbers differ', async () => {
    const admin = kafka.admin();
    await admin.connect();
    const topic = `${posthorn.env.TOPIC_PREFIX}slow-lane`;
    await admin.createPartitions({ topicPartitions: [{ topic, count: 8 }] });
    await admin.disconnect();
    await eventually('the partitions', async () => (await countsOf(['slow-lane'])).has(8));
    const settings = { ...posthorn.env, OPS_PORT: '0', LOG_LEVEL: 'silent' };
    const service = startProgram('services/dispatcher/src/main.ts', [], settings);
    expect((await service.ended).code).toBe(1);
    const { TOPIC_PREFIX: prefix } = posthorn.env;
    expect(service.output().trim()).toBe(
      `These topics must have the same number of partitions: ${prefix}message-created has 4, ` +
        `${prefix}retry-due has 4, ${prefix}slow-lane has 8. ` +
        'Run deploy/setup/add-partitions.ts as docs/partitions.md says.',
    );
  });
});
