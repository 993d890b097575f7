import { randomInt } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { createApiClient, NoAnswerError, type ApiClient } from '../../support/api/api-client.ts';
import type { ShownDelivery } from '../../support/api/resources.ts';
import { untilFinal, waitsMs } from '../../support/process/final-deliveries.ts';
import { startKafkaProxy, type KafkaProxy } from '../../support/process/kafka-proxy.ts';
import { killHard, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { metricOf, startLoad, untilDelivered, type Sent } from '../../support/process/traffic.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import {
  startRefusingEndpoint,
  type RefusingEndpoint,
} from '../../support/receivers/refusing-endpoint.ts';
import { createRandom } from '../../support/samples/seeded-random.ts';
import { readTopic } from '../../support/stores/read-topic.ts';
import { eventually } from '../../support/time/eventually.ts';

/** Each run kills at other moments; KILL_SEED repeats one. */
const seed = Number(process.env.KILL_SEED ?? randomInt(2 ** 31));
const DELAYS_MS = [300, 500, 1_000];

let posthorn: Posthorn;

beforeAll(async () => {
  posthorn = await startPosthorn({ RETRY_DELAYS: '300ms,500ms,1s' });
  console.log(`KILL_SEED=${seed}`);
}, 120_000);

afterAll(() => posthorn.stop(), 60_000);

/** A gateway needs a second of processor time to start; more than this at once do not start sooner. */
const AT_ONCE = 3;
const BURST = 30;
const BLOCKED_KILLS = 5;
const SLOW_KILLS = 6;

describe('A gateway between the insert and the publication', () => {
  const random = createRandom(seed);
  let receiver: Receiver;
  let webhookId: string;
  let tried = 0;

  beforeAll(async () => {
    receiver = await startReceiver();
    ({ webhookId } = await posthorn.api.createTarget(receiver.url));
  });

  afterAll(() => receiver.close());

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

  it('responds at once while Kafka cannot be reached, and publishes as soon as it can', async () => {
    const proxy = await startKafkaProxy(posthorn.env.KAFKA_BROKERS);
    const [port = 0] = await freePorts(1);
    const settings = { PORT: String(port), KAFKA_BROKERS: proxy.broker };
    const gateway = await posthorn.start('gateway', settings);
    proxy.block();
    const api = createApiClient(`http://127.0.0.1:${port}`, posthorn.apiKey);
    const startedMs = performance.now();
    const sent = await sendTo(api);
    expect(performance.now() - startedMs).toBeLessThan(1_000);
    const { body } = await api.get(`/api/v1/deliveries/${String(sent?.deliveryId)}`);
    expect(body.data).toMatchObject({ status: 'pending', messageId: sent?.messageId });
    proxy.unblock();
    await untilDelivered(posthorn.api, sent ? [sent] : [], 60_000);
    expect((await gateway.stop()).code).toBe(0);
    await proxy.close();
  }, 120_000);

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

/** Nobody reads the partitions of a killed service until its session of ten seconds ends. */
const KILLS = 6;
/** After a start it first releases what has become due in the meantime. */
const KILLED_WITHIN_MS = 2_000;
/** After a kill, records are read again whose attempts are recorded; these are dropped, so hardly any is repeated. */
const MAY_REPEAT = 0.02;

describe(`A retry service that is killed ${KILLS} times`, () => {
  const random = createRandom(seed);
  let endpoints: RefusingEndpoint[];

  beforeAll(async () => {
    endpoints = await Promise.all([0, 1, 2, 3, Infinity].map(startRefusingEndpoint));
  });

  afterAll(() => Promise.all(endpoints.map((each) => each.close())));

  async function killAgainAndAgain(): Promise<void> {
    for (let kills = 0; kills < KILLS; kills += 1) {
      // Not a condition but a random time: the kill may come at any moment.
      await wait(random() * KILLED_WITHIN_MS);
      await killHard(posthorn.retry);
      posthorn.retry = await posthorn.start('retry');
    }
  }

  async function runUnderLoad(): Promise<ShownDelivery[]> {
    const { api } = posthorn;
    const targets = await Promise.all(endpoints.map(({ url }) => api.createTarget(url)));
    const webhookIds = targets.map(({ webhookId }) => webhookId);
    const load = startLoad(api, webhookIds, 50);
    await killAgainAndAgain();
    return untilFinal(api, await load.stop(), 60_000);
  }

  /**
   * Returns which of these messages have dead letters, once all expected ones are there. Others may have some too:
   * a killed gateway stored messages without a response, and they may be swept after their receiver has closed.
   */
  async function deadLettersOf(sent: Set<string>, expected: Set<string>): Promise<Set<string>> {
    const found = new Set<string>();
    await readTopic(posthorn.env, 'exhausted-deliveries', ({ value }) => {
      found.add((JSON.parse(value) as { messageId: string }).messageId);
      return [...expected].every((id) => found.has(id));
    });
    return new Set([...found].filter((id) => sent.has(id)));
  }

  async function judge(deliveries: readonly ShownDelivery[]): Promise<void> {
    const arrivals = new Map(endpoints.flatMap(({ arrivalsMs }) => [...arrivalsMs]));
    const requestsOf = ({ messageId }: ShownDelivery): readonly number[] =>
      arrivals.get(messageId) ?? [];
    const ofDead = ({ messageId }: ShownDelivery) => endpoints.at(-1)?.arrivalsMs.has(messageId);
    const isRight = (each: ShownDelivery): boolean =>
      each.status === (ofDead(each) ? 'exhausted' : 'delivered') &&
      each.attempts.every(({ number }, index) => number === index + 1) &&
      each.attempts.every(({ outcome }, index) => {
        const isLast = index === each.attempts.length - 1;
        return (outcome === 'success') === (isLast && !ofDead(each));
      });
    expect(deliveries.filter((each) => !isRight(each))).toEqual([]);
    expect(deliveries.filter((each) => requestsOf(each).length < each.attemptCount)).toEqual([]);
    expect(arrivals.size).toBe(deliveries.length);

    const isEarly = (waitMs: number, index: number): boolean => waitMs < (DELAYS_MS[index] ?? 0);
    expect(deliveries.filter((each) => waitsMs(each).some(isEarly))).toEqual([]);
    const once = deliveries.filter((each) => requestsOf(each).length === each.attemptCount);
    const gapsMs = once.map((each) =>
      requestsOf(each)
        .slice(1)
        .map((ms, index) => ms - (requestsOf(each)[index] ?? 0)),
    );
    expect(gapsMs.filter((gaps) => gaps.some(isEarly))).toEqual([]);

    const idsOf = (some: readonly ShownDelivery[]) => new Set(some.map((each) => each.messageId));
    const exhausted = idsOf(deliveries.filter(ofDead));
    expect(await deadLettersOf(idsOf(deliveries), exhausted)).toEqual(exhausted);
    expect(deliveries.length - once.length).toBeLessThanOrEqual(deliveries.length * MAY_REPEAT);
  }

  it('loses nothing, releases nothing early, and brings every delivery to one final status', async () => {
    await judge(await runUnderLoad());
  }, 400_000);
});
