import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { createApiClient, type ApiClient } from '../../support/api/api-client.ts';
import { startKafkaProxy, type KafkaProxy } from '../../support/process/kafka-proxy.ts';
import {
  startPosthorn,
  type Posthorn,
  type RunningService,
} from '../../support/process/posthorn.ts';
import { metricOf } from '../../support/process/traffic.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { insertFailedDeliveries } from '../../support/stores/insert-failed-deliveries.ts';
import { eventually } from '../../support/time/eventually.ts';

const FAILED = 50;
const DRAIN_MS = 2_000;

describe('A resend of a gateway whose Kafka is frozen', () => {
  let proxy: KafkaProxy;
  let posthorn: Posthorn;
  let receiver: Receiver;
  let mongo: MongoConnection;
  /** The gateway that is cut off, beside one that is not. */
  let gateway: RunningService;
  let api: ApiClient;
  let retryDue: string;

  beforeAll(async () => {
    [posthorn, receiver] = await Promise.all([startPosthorn(), startReceiver()]);
    const { KAFKA_BROKERS, MONGODB_URL, TOPIC_PREFIX } = posthorn.env;
    retryDue = `topic="${TOPIC_PREFIX}retry-due"`;
    [proxy, mongo] = await Promise.all([
      startKafkaProxy(KAFKA_BROKERS),
      connectMongo(MONGODB_URL, 'posthorn-test'),
    ]);
    const [port = 0] = await freePorts(1);
    gateway = await posthorn.start('gateway', {
      PORT: String(port),
      KAFKA_BROKERS: proxy.broker,
      DRAIN_TIMEOUT_MS: String(DRAIN_MS),
    });
    api = createApiClient(`http://127.0.0.1:${port}`, posthorn.apiKey);
  }, 120_000);

  afterAll(async () => {
    await Promise.all([mongo.close(), receiver.close(), proxy.close()]);
    await posthorn.stop();
  }, 60_000);

  const produced = (): Promise<number> =>
    metricOf(gateway, 'posthorn_kafka_produced_records_total', retryDue);
  const consumed = (): Promise<number> =>
    metricOf(posthorn.dispatcher, 'posthorn_kafka_consumed_records_total', retryDue);

  async function resendFailed(): Promise<string[]> {
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    const { companyId } = posthorn;
    const messageIds = await insertFailedDeliveries(mongo.db, { companyId, webhookId }, FAILED);
    const since = new Date(Date.now() - 3_600_000).toISOString();
    const startedMs = performance.now();
    const begun = await api.post(`/api/v1/webhooks/${webhookId}/resend-failed`, { since });
    expect([begun.status, performance.now() - startedMs < 2_000]).toEqual([202, true]);
    return messageIds;
  }

  const attemptsOf = (messageIds: readonly string[]): number[] =>
    messageIds.map((messageId) => receiver.of(messageId).length);

  it('is started at once, continued elsewhere, and sent once although both gateways publish it', async () => {
    proxy.block();
    const messageIds = await resendFailed();
    await eventually(
      'the other gateway sends it',
      () => attemptsOf(messageIds).every((attempts) => attempts > 0),
      60_000,
    );
    const before = await consumed();
    proxy.unblock();
    await eventually('this gateway publishes its copies', async () => (await produced()) >= FAILED);
    await eventually('they are read', async () => (await consumed()) >= before + FAILED);
    expect(attemptsOf(messageIds)).toEqual(messageIds.map(() => 1));
  }, 120_000);

  it('does not keep that gateway from ending when it is stopped', async () => {
    proxy.block();
    const messageIds = await resendFailed();
    const startedMs = performance.now();
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
    expect(performance.now() - startedMs).toBeLessThan(DRAIN_MS + 11_000);
    await eventually(
      'the other gateway sends it',
      () => attemptsOf(messageIds).every((attempts) => attempts === 1),
      60_000,
    );
  }, 120_000);
});
