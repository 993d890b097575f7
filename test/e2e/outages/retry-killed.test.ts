import { randomInt } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { untilFinal, waitsMs } from '../../support/stores/finished.ts';
import { killHard, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { readTopic } from '../../support/stores/read-topic.ts';
import {
  startRefusingEndpoint,
  type RefusingEndpoint,
} from '../../support/receivers/refusing-endpoint.ts';
import type { ShownDelivery } from '../../support/process/resources.ts';
import { createRandom } from '../../support/samples/seeded-random.ts';
import { startLoad } from '../../support/process/traffic.ts';

const DELAYS_MS = [300, 500, 1_000];
/** Side by side: what a killed service owned is idle until its session of ten seconds is over. */
const INSTALLATIONS = 2;
const KILLS_EACH = 10;
/** After a start it works off what has gathered, then what comes. */
const KILLED_WITHIN_MS = 2_000;
/** What a kill leaves uncommitted is recorded by the next start, and dropped: hardly ever sent twice. */
const MAY_REPEAT = 0.02;
const seed = Number(process.env.KILL_SEED ?? randomInt(2 ** 31));

interface Installation {
  posthorn: Posthorn;
  endpoints: RefusingEndpoint[];
}

describe('a retry service that is killed 20 times', () => {
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
      // No condition to wait for: that it may be any moment is what is tested.
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

  /** Message ids of the dead letters, once those that must be there are. */
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

  it('loses nothing, is never early, and brings every delivery to one final state', async () => {
    console.log(`KILL_SEED=${seed}`);
    await Promise.all(
      installations.map(async (each, index) => {
        await judge(each, await runUnderLoad(each, createRandom(seed + index)));
      }),
    );
  }, 400_000);
});
