import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createKafkaClient } from '@posthorn/platform/kafka/connect.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { countRecords, emptyTopic } from '../../support/stores/empty-topic.ts';
import { eventually } from '../../support/time/eventually.ts';
import {
  killHard,
  startPosthorn,
  type Posthorn,
  type RunningService,
} from '../../support/process/posthorn.ts';
import { runProgram } from '../../support/process/service-process.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { readTopic } from '../../support/stores/read-topic.ts';
import {
  metricOf,
  readDeliveries,
  sendMany,
  untilDelivered,
  untilMetric,
  type Sent,
} from '../../support/process/traffic.ts';

/** Messages to each webhook: too few to open its circuit. */
const EACH = 5;
const WEBHOOKS = 10;
const MESSAGES = EACH * WEBHOOKS;
const WITHIN_MS = 60_000;
const MISSING = 'posthorn_kafka_topic_missing';
const RECONCILED = 'posthorn_reconciled_deliveries_total';

describe('Records that Kafka has lost', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;
  let webhookIds: string[];
  let { dispatcher, retry } = {} as Record<'dispatcher' | 'retry', RunningService>;

  beforeAll(async () => {
    // One retry, late enough to lose its record before it is due.
    posthorn = await startPosthorn({ RETRY_DELAYS: '8s' });
    ({ dispatcher, retry } = posthorn);
    receiver = await startReceiver();
  }, 120_000);

  beforeEach(async () => {
    receiver.received.length = 0;
    const making = Array.from({ length: WEBHOOKS }, () => posthorn.api.createTarget(receiver.url));
    webhookIds = (await Promise.all(making)).map(({ webhookId }) => webhookId);
  });

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  const send = (): Promise<Sent[]> => sendMany(posthorn.api, webhookIds, EACH);
  /** Starts a retry service that takes a delivery for lost when it is two seconds late. */
  const startReconciling = async (): Promise<void> => {
    retry = await posthorn.start('retry', { RECONCILE_AFTER: '2s' });
  };
  const startPatient = async (): Promise<void> => {
    await retry.stop();
    retry = await posthorn.start('retry');
  };

  function timesReceived(sent: readonly Sent[]): Set<number> {
    return new Set(sent.map(({ messageId }) => receiver.of(messageId).length));
  }

  it('are replaced when they were retries: each delivery is delivered, with no repeated attempt', async () => {
    receiver.answerWith(failing(1));
    const sent = await send();
    const parked = (): Promise<number> => countRecords(posthorn.env, 'retry.8s');
    await eventually('all parked', async () => (await parked()) >= MESSAGES, WITHIN_MS);
    await killHard(retry);
    for (const lost of ['retry.8s', 'delivery-failed']) await emptyTopic(posthorn.env, lost);

    await startReconciling();
    await untilDelivered(posthorn.api, sent, WITHIN_MS);
    expect(timesReceived(sent)).toEqual(new Set([2]));
    // On a slow machine some may have come due before the kill.
    await untilMetric(retry, RECONCILED, 'overdue_retry');
    await eventually('the log', () => retry.output().includes('moved stuck deliveries on'));
  });

  it('are replaced when they were messages that no dispatcher had read', async () => {
    receiver.answerWith(failing(0));
    await startPatient();
    await dispatcher.stop();
    const sent = await send();
    const unpublished = (): Promise<number> =>
      metricOf(posthorn.gateway, 'posthorn_unpublished_messages');
    await eventually('all published', async () => (await unpublished()) === 0, WITHIN_MS);
    await emptyTopic(posthorn.env, 'message-created');

    await retry.stop();
    await startReconciling();
    dispatcher = await posthorn.start('dispatcher');
    await untilDelivered(posthorn.api, sent, WITHIN_MS);
    expect(timesReceived(sent)).toEqual(new Set([1]));
    await untilMetric(retry, RECONCILED, 'lost_message', MESSAGES);
  });

  it('are replaced when they were last failures: the delivery is exhausted, with a dead letter', async () => {
    let isLast = false;
    receiver.answerWith((response, _received, nth) => {
      const answer = (): unknown => response.writeHead(500).end();
      if (nth === 1) return answer();
      isLast = true;
      // The response to the last attempt waits until no retry service runs that would end the schedule.
      void killHard(retry)
        .then(() => emptyTopic(posthorn.env, 'delivery-failed'))
        .then(answer);
    });
    await startPatient();
    const { deliveryId, messageId } = await posthorn.api.send({ webhookId: webhookIds[0] }, {});
    await eventually('the last attempt', () => isLast, WITHIN_MS);
    await eventually('it is recorded', async () => {
      const [shown] = await readDeliveries(posthorn.api, [deliveryId]);
      return shown?.attemptCount === 2;
    });
    await eventually('the loss of its failure', () => emptyTopic(posthorn.env, 'delivery-failed'));

    await startReconciling();
    await eventually(
      'the end',
      async () => {
        const [shown] = await readDeliveries(posthorn.api, [deliveryId]);
        return shown?.status === 'exhausted';
      },
      WITHIN_MS,
    );
    expect(receiver.of(messageId)).toHaveLength(2);
    const [letter] = await readTopic(posthorn.env, 'exhausted-deliveries', ({ value }) =>
      value.includes(messageId),
    );
    expect(letter?.headers).toMatchObject({ reason: 'schedule_exhausted' });
    await untilMetric(retry, RECONCILED, 'unended_schedule');
  });

  it('are missed together with a deleted topic, which is reported and used again once it exists', async () => {
    await startPatient();
    const { KAFKA_BROKERS, TOPIC_PREFIX } = posthorn.env;
    const topic = `${TOPIC_PREFIX}retry.8s`;
    const logger = createLogger('test', 'silent');
    const access = { brokers: KAFKA_BROKERS.split(',') };
    const admin = createKafkaClient('posthorn-test', access, logger).admin();
    await admin.connect();
    await admin.deleteTopics({ topics: [topic] });
    await admin.disconnect();
    // A check every 30 s.
    const isShown = async (): Promise<boolean> => (await metricOf(retry, MISSING, topic)) === 1;
    await eventually('the metric', isShown, WITHIN_MS);
    await eventually('the log', () => retry.output().includes('a topic was deleted'));
    await runProgram('deploy/setup/create-topics.ts', [], posthorn.env);
    receiver.answerWith(failing(1));
    const sent = await send();
    await untilDelivered(posthorn.api, sent, WITHIN_MS);
    expect(timesReceived(sent)).toEqual(new Set([2]));
  }, 200_000);
});
