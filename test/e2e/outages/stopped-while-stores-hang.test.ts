import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startKafkaProxy, type KafkaProxy } from '../../support/process/kafka-proxy.ts';
import { createNamespace } from '../../support/process/namespace.ts';
import { startPosthorn, type Posthorn, type ServiceName } from '../../support/process/posthorn.ts';
import type { ServiceProcess } from '../../support/process/service-process.ts';
import { startStoreProxy, type StoreProxy } from '../../support/process/store-proxy.ts';
import { sendMany } from '../../support/process/traffic.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

const SERVICES: readonly ServiceName[] = ['gateway', 'dispatcher', 'retry'];
const DRAIN_MS = 2_000;
/** A drain, ten seconds to close, and one of a slow machine. */
const WITHIN_MS = DRAIN_MS + 11_000;

describe('SIGTERM while a store does not answer', () => {
  let kafka: KafkaProxy;
  let mongo: StoreProxy;
  let receiver: Receiver;
  let posthorn: Posthorn;

  beforeAll(async () => {
    const { MONGODB_URL, KAFKA_BROKERS } = createNamespace();
    kafka = await startKafkaProxy(KAFKA_BROKERS);
    mongo = await startStoreProxy(MONGODB_URL);
    posthorn = await startPosthorn({
      KAFKA_BROKERS: kafka.broker,
      MONGODB_URL: mongo.url,
      DRAIN_TIMEOUT_MS: String(DRAIN_MS),
      RETRY_DELAYS: '100ms,1s,1h',
    });
    receiver = await startReceiver();
    receiver.answerWith((response) => {
      setTimeout(() => response.writeHead(500).end(), 300);
    });
  }, 120_000);

  /** Attempts that run, failures that are parked, and retries that are released. */
  beforeEach(async () => {
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    receiver.received.length = 0;
    await sendMany(posthorn.api, [webhookId], 5);
    await eventually('attempts', () => receiver.received.length > 5, 30_000);
  }, 60_000);

  afterAll(async () => {
    await posthorn.stop();
    await Promise.all([kafka.close(), mongo.close(), receiver.close()]);
  }, 60_000);

  async function stopAll(services: readonly ServiceProcess[]): Promise<(number | null)[]> {
    const beganAtMs = performance.now();
    const ends = await Promise.all(services.map((service) => service.stop()));
    expect(performance.now() - beganAtMs).toBeLessThan(WITHIN_MS);
    return ends.map(({ code }) => code);
  }

  const startAgain = async (): Promise<void> => {
    const started = await Promise.all(SERVICES.map((name) => posthorn.start(name)));
    for (const service of started) posthorn[service.name] = service;
  };

  it.each(['Kafka', 'MongoDB', 'both'])(
    'ends every service with 0 in its time: %s',
    async (store) => {
      if (store !== 'MongoDB') kafka.block();
      if (store !== 'Kafka') mongo.freeze();
      const codes = await stopAll(SERVICES.map((name) => posthorn[name]));
      kafka.unblock();
      mongo.thaw();
      expect(codes).toEqual([0, 0, 0]);
      await startAgain();
    },
    120_000,
  );
});
