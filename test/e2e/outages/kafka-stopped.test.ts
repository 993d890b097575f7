import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  startNativeKafka,
  type NativeKafka,
} from '../../../tools/local-stack/stores/kafka-native.ts';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { eventually } from '../../support/time/eventually.ts';
import { killHard, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';

const log = (): void => undefined;

describe('A stopped Kafka', () => {
  let place: Parameters<typeof startNativeKafka>[0];
  let kafka: NativeKafka;
  let posthorn: Posthorn;
  let receiver: Receiver;

  /** Its own broker, so that no other test is disturbed. */
  beforeAll(async () => {
    const [port = 0, controllerPort = 0] = await freePorts(2);
    place = { dir: mkdtempSync(join(tmpdir(), 'posthorn-kafka-')), port, controllerPort, log };
    kafka = await startNativeKafka(place);
    posthorn = await startPosthorn({ KAFKA_BROKERS: kafka.brokers, RETRY_DELAYS: '1s' });
    receiver = await startReceiver();
  }, 180_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
    await kafka.stop();
    rmSync(place.dir, { recursive: true, force: true });
  }, 60_000);

  it('does not delay the API, and messages accepted meanwhile arrive after it is started again', async () => {
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    await kafka.stop();
    const startedMs = Date.now();
    const { messageId, deliveryId } = await posthorn.api.send({ webhookId }, { while: 'away' });
    expect(Date.now() - startedMs).toBeLessThan(1_000);
    const meanwhile = await posthorn.api.get(`/api/v1/deliveries/${deliveryId}`);
    expect(meanwhile.body.data).toMatchObject({ status: 'pending', messageId });

    kafka = await startNativeKafka(place);
    await eventually('the message arrives', () => receiver.of(messageId).length > 0, 60_000);
    await eventually('it is recorded', async () => {
      const { body } = await posthorn.api.get(`/api/v1/deliveries/${deliveryId}`);
      return (body.data as { status: string }).status === 'delivered';
    });
  });

  it('loses nothing of a gateway that is killed before it can publish: the sweep publishes it', async () => {
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    await kafka.kill();
    const sent = await Promise.all(
      Array.from({ length: 20 }, (_, n) => posthorn.api.send({ webhookId }, { n })),
    );
    await killHard(posthorn.gateway);
    kafka = await startNativeKafka(place);
    await eventually(
      'every message of the killed gateway',
      () => sent.every(({ messageId }) => receiver.of(messageId).length > 0),
      80_000,
    );
  });
});
