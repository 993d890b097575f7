import { randomInt } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { untilFinal, waitsMs } from '../../support/process/final-deliveries.ts';
import { killHard, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { readTopic } from '../../support/stores/read-topic.ts';
import {
  startRefusingEndpoint,
  type RefusingEndpoint,
} from '../../support/receivers/refusing-endpoint.ts';
import type { ShownDelivery } from '../../support/api/resources.ts';
import { createRandom } from '../../support/samples/seeded-random.ts';
import { startLoad } from '../../support/process/traffic.ts';

const DELAYS_MS = [300, 500, 1_000];
/** At the same time: nobody reads the partitions of a killed service until its session of ten seconds ends. */
const INSTALLATIONS = 2;
const KILLS_EACH = 6;
/** After a start it first releases what has become due in the meantime. */
const KILLED_WITHIN_MS = 2_000;
/** After a kill, records are read again whose attempts are recorded; these are dropped, so hardly any is repeated. */
const MAY_REPEAT = 0.02;
const seed = Number(process.env.KILL_SEED ?? randomInt(2 ** 31));

interface Installation {
  posthorn: Posthorn;
  endpoints: RefusingEndpoint[];
}

describe(`A retry service that is killed ${INSTALLATIONS * KILLS_EACH} times`, () => {
  const installations: Installation[] = [];

  beforeAll(async () => {
    while (installations.length < INSTALLATIONS) installations.push(await install());
  }, 120_000);

  afterAll(async () => {
    await Promise.all(
      installations.map(async ({ posthorn, endpoints }) => {
        await Promise.all(endpoints.map((each) => each.close()));
        await posthorn.stop();
      }),
    );
  }, 60_000);

  async function install(): Promise<Installation> {
    const [posthorn, ...endpoints] = await Promise.all([
      startPosthorn({ RETRY_DELAYS: '300ms,500ms,1s' }),
      ...[0, 1, 2, 3, Infinity].map(startRefusingEndpoint),
    ]);
    return { posthorn, endpoints };
  }

  async function killAgainAndAgain(posthorn: Posthorn, random: () => number): Promise<void> {
    for (let kills = 0; kills < KILLS_EACH; kills += 1) {
      // Not a condition but a random time: the kill may come at any moment.
      await wait(random() * KILLED_WITHIN_MS);
      await killHard(posthorn.retry);
      posthorn.retry = await posthorn.start('retry');
    }
  }

  async function runUnderLoad(
    { posthorn, endpoints }: Installation,
    random: () => number,
  ): Promise<ShownDelivery[]> {
    const { api } = posthorn;
    const targets = await Promise.all(endpoints.map(({ url }) => api.createTarget(url)));
    const webhookIds = targets.map(({ webhookId }) => webhookId);
    const load = startLoad(api, webhookIds, 50);
    await killAgainAndAgain(posthorn, random);
    return untilFinal(api, await load.stop(), 60_000);
  }

  /** Returns the message ids of the dead letters, once all expected ones are there. */
  async function deadLettersOf({ env }: Posthorn, expected: Set<string>): Promise<Set<string>> {
    const found = new Set<string>();
    await readTopic(env, 'dead-letters', ({ value }) => {
      found.add((JSON.parse(value) as { messageId: string }).messageId);
      return [...expected].every((id) => found.has(id));
    });
    return found;
  }

  async function judge(
    { posthorn, endpoints }: Installation,
    deliveries: ShownDelivery[],
  ): Promise<void> {
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

    const exhausted = deliveries.filter(ofDead).map(({ messageId }) => messageId);
    expect(await deadLettersOf(posthorn, new Set(exhausted))).toEqual(new Set(exhausted));
    expect(deliveries.length - once.length).toBeLessThanOrEqual(deliveries.length * MAY_REPEAT);
  }

  it('loses nothing, releases nothing early, and brings every delivery to one final status', async () => {
    console.log(`KILL_SEED=${seed}`);
    await Promise.all(
      installations.map(async (each, index) => {
        await judge(each, await runUnderLoad(each, createRandom(seed + index)));
      }),
    );
  }, 400_000);
});
