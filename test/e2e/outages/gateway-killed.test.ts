import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { createApiClient, NoAnswerError, type ApiClient } from '../../support/api/api-client.ts';
import { eventually } from '../../support/time/eventually.ts';
import { startKafkaProxy, type KafkaProxy } from '../../support/process/kafka-proxy.ts';
import { killHard, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { createRandom } from '../../support/samples/seeded-random.ts';
import { metricOf, untilDelivered, type Sent } from '../../support/process/traffic.ts';

/** A gateway needs a second of processor time to start; more than this at once do not start sooner. */
const AT_ONCE = 3;
const BURST = 30;
/** Each run kills at other moments; KILL_SEED repeats one. */
const BLOCKED_KILLS = 6;
const SLOW_KILLS = 9;
const seed = Number(process.env.KILL_SEED ?? randomInt(2 ** 31));

describe('A gateway that is killed between the insert and the publication', () => {
  const random = createRandom(seed);
  let posthorn: Posthorn;
  let receiver: Receiver;
  let webhookId: string;
  let tried = 0;

  beforeAll(async () => {
    [posthorn, receiver] = await Promise.all([startPosthorn(), startReceiver()]);
    ({ webhookId } = await posthorn.api.createTarget(receiver.url));
    console.log(`KILL_SEED=${seed}`);
  }, 120_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  /** Returns null when the gateway was killed before it responded. */
  async function sendTo(api: ApiClient): Promise<Sent | null> {
    tried += 1;
    return api.send({ webhookId }, { n: tried }).catch((error: unknown) => {
      if (error instanceof NoAnswerError) return null;
      throw error;
    });
  }

  /** Kills a gateway in the middle of a burst; returns the messages it had accepted. */
  async function killInBurst(proxy: KafkaProxy, port: number, isBlocked: boolean): Promise<Sent[]> {
    const settings = { PORT: String(port), KAFKA_BROKERS: proxy.broker };
    const gateway = await posthorn.start('gateway', settings);
    if (isBlocked) proxy.block();
    const api = createApiClient(`http://127.0.0.1:${port}`, posthorn.apiKey);
    const killAt = 1 + Math.floor(random() * BURST);
    let answers = 0;
    const answered = async (): Promise<Sent | null> => {
      const sent = await sendTo(api);
      answers += 1;
      if (answers === killAt) gateway.signal('SIGKILL');
      return sent;
    };
    const sent = await Promise.all(Array.from({ length: BURST }, answered));
    await killHard(gateway);
    if (isBlocked) proxy.unblock();
    return sent.filter((each) => each !== null);
  }

  /** Kills so many gateways, some at the same time; returns what they had accepted, once all is delivered. */
  async function killMany(kills: number, way: { delayMs: number; isBlocked: boolean }) {
    let left = kills;
    const killInTurn = async (port: number): Promise<Sent[]> => {
      const proxy = await startKafkaProxy(posthorn.env.KAFKA_BROKERS, way.delayMs);
      const accepted: Sent[] = [];
      while (left > 0) {
        left -= 1;
        accepted.push(...(await killInBurst(proxy, port, way.isBlocked)));
      }
      await proxy.close();
      return accepted;
    };
    const perProxy = await Promise.all((await freePorts(AT_ONCE)).map(killInTurn));
    const accepted = perProxy.flat();
    await untilDelivered(posthorn.api, accepted, 60_000);
    return accepted;
  }

  const swept = (): Promise<number> => metricOf(posthorn.retry, 'posthorn_swept_records_total');

  function judge(accepted: Sent[]): void {
    const received = new Set(receiver.received.map(({ headers }) => headers['webhook-id']));
    expect(accepted.filter(({ messageId }) => !received.has(messageId))).toEqual([]);
    const numbers = receiver.received.map(({ body }) => {
      return (JSON.parse(body.toString()) as { n: number }).n;
    });
    expect(numbers.filter((n) => !(n >= 1 && n <= tried))).toEqual([]);
  }

  it(`loses nothing in ${BLOCKED_KILLS} kills while Kafka cannot be reached: the sweep publishes everything`, async () => {
    const accepted = await killMany(BLOCKED_KILLS, { delayMs: 0, isBlocked: true });
    expect(accepted.length).toBeGreaterThanOrEqual(BLOCKED_KILLS);
    await eventually('all are swept', async () => (await swept()) >= accepted.length);
    judge(accepted);
  }, 240_000);

  it(`loses nothing in ${SLOW_KILLS} kills at any moment of a burst while Kafka is slow`, async () => {
    const before = await swept();
    const accepted = await killMany(SLOW_KILLS, { delayMs: 10, isBlocked: false });
    await eventually('a swept record', async () => (await swept()) > before);
    judge(accepted);
  }, 240_000);
});
