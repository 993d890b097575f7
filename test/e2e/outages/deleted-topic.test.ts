import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createKafkaClient } from '@posthorn/platform/kafka/connect.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { Kafka } from 'kafkajs';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { runProgram, statusOf } from '../../support/process/service-process.ts';
import { metricOf, sendMany, untilDelivered } from '../../support/process/traffic.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

const MISSING = 'posthorn_kafka_topic_missing';
const CREATE = 'deploy/setup/create-topics.ts';
/** A check every 30 s, a second one, and one of a slow machine. */
const TOLD_WITHIN_MS = 90_000;
const WITHIN_MS = 60_000;

describe('A topic that is deleted while the services run', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;
  let kafka: Kafka;
  let webhookIds: string[];

  beforeAll(async () => {
    posthorn = await startPosthorn({ RETRY_DELAYS: '500ms' });
    const { KAFKA_BROKERS } = posthorn.env;
    const logger = createLogger('test', 'silent');
    kafka = createKafkaClient('posthorn-test', KAFKA_BROKERS.split(','), logger);
    receiver = await startReceiver();
    const making = Array.from({ length: 8 }, () => posthorn.api.createTarget(receiver.url));
    webhookIds = (await Promise.all(making)).map(({ webhookId }) => webhookId);
  }, 120_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  async function deleteTopics(...names: string[]): Promise<void> {
    const admin = kafka.admin();
    await admin.connect();
    await admin.deleteTopics({ topics: names.map((name) => posthorn.env.TOPIC_PREFIX + name) });
    await admin.disconnect();
  }

  const isShownMissing = async (name: string): Promise<boolean> =>
    (await metricOf(posthorn.retry, MISSING, posthorn.env.TOPIC_PREFIX + name)) === 1;

  async function expectDeliveries(): Promise<void> {
    receiver.answerWith(failing(1));
    const sent = await sendMany(posthorn.api, webhookIds, 2);
    await untilDelivered(posthorn.api, sent, WITHIN_MS);
  }

  it.each(['retry.500ms', 'message-created'])(
    'is told by a metric and the log, and is used again when it was created again: %s',
    async (name) => {
      await expectDeliveries();
      await deleteTopics(name);
      await eventually('the metric', () => isShownMissing(name), TOLD_WITHIN_MS);
      const isLogged = (): boolean => posthorn.retry.output().includes('a topic was deleted');
      await eventually('the line in the log', isLogged);
      await runProgram(CREATE, [], posthorn.env);
      await expectDeliveries();
      await eventually('the end', async () => !(await isShownMissing(name)), TOLD_WITHIN_MS);
    },
    300_000,
  );

  it('asks for a restart of the retry service when it is a delay topic of earlier settings', async () => {
    const env = { ...posthorn.env, RETRY_DELAYS: '500ms,700ms' };
    await runProgram(CREATE, [], env);
    await posthorn.retry.stop();
    const retry = await posthorn.start('retry');
    await deleteTopics('retry.700ms');
    const isAlive = async () => (await statusOf(`${retry.opsUrl}/livez`)) === 200;
    await eventually('the failed probe', async () => !(await isAlive()), TOLD_WITHIN_MS);
    await retry.stop();
    posthorn.retry = await posthorn.start('retry');
    await expectDeliveries();
  }, 300_000);
});
