import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { createKafkaClient } from '@posthorn/platform/kafka/connect.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { Kafka } from 'kafkajs';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { runProgram } from '../../support/process/service-process.ts';
import { metricOf, sendMany, untilDelivered } from '../../support/process/traffic.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

const MISSING = 'posthorn_kafka_topic_missing';
const CREATE = 'deploy/setup/create-topics.ts';
/** A check every 30 s, and one of a slow machine. */
const REPORTED_WITHIN_MS = 60_000;
const WITHIN_MS = 60_000;

describe('A topic that is deleted while the services run', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;
  let kafka: Kafka;

  beforeAll(async () => {
    posthorn = await startPosthorn({ RETRY_DELAYS: '500ms' });
    const { KAFKA_BROKERS } = posthorn.env;
    const logger = createLogger('test', 'silent');
    kafka = createKafkaClient('posthorn-test', { brokers: KAFKA_BROKERS.split(',') }, logger);
    receiver = await startReceiver();
  }, 120_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  async function deleteTopic(name: string): Promise<void> {
    const admin = kafka.admin();
    await admin.connect();
    await admin.deleteTopics({ topics: [posthorn.env.TOPIC_PREFIX + name] });
    await admin.disconnect();
  }

  const isShownMissing = async (name: string): Promise<boolean> =>
    (await metricOf(posthorn.retry, MISSING, posthorn.env.TOPIC_PREFIX + name)) === 1;

  /** Each message is delivered by a retry. To new webhooks: the circuit of one that fails often would open. */
  async function expectDeliveries(): Promise<void> {
    const making = Array.from({ length: 8 }, () => posthorn.api.createTarget(receiver.url));
    const webhookIds = (await Promise.all(making)).map(({ webhookId }) => webhookId);
    receiver.answerWith(failing(1));
    const sent = await sendMany(posthorn.api, webhookIds, 2);
    await untilDelivered(posthorn.api, sent, WITHIN_MS);
  }

  it('is reported by a metric and a log line, and is used again after it was created again', async () => {
    await expectDeliveries();
    await deleteTopic('retry.500ms');
    await eventually('the metric', () => isShownMissing('retry.500ms'), REPORTED_WITHIN_MS);
    const isLogged = (): boolean => posthorn.retry.output().includes('a topic was deleted');
    await eventually('the line in the log', isLogged);
    await runProgram(CREATE, [], posthorn.env);
    await expectDeliveries();
  }, 200_000);
});
