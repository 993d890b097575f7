import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { untilFinal, waitsMs } from '../../support/process/final-deliveries.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import {
  startRefusingEndpoint,
  type RefusingEndpoint,
} from '../../support/receivers/refusing-endpoint.ts';
import type { ShownDelivery } from '../../support/api/resources.ts';
import { createServiceClock, type ServiceClock } from '../../support/process/service-clock.ts';
import { sendMany, startLoad, type Load } from '../../support/process/traffic.ts';

const HOUR_MS = 3_600_000;
const DELAYS_MS = [5_000, 1_000, 1_000];
/** The reader of a delay topic that waits reads the clock once a minute; the rest is for the work itself. */
const AWAKE_WITHIN_MS = 100_000;

describe('A clock that jumps', () => {
  let clock: ServiceClock;
  let posthorn: Posthorn;
  let endpoints: RefusingEndpoint[];
  let webhookIds: string[];
  let load: Load | undefined;

  beforeAll(async () => {
    clock = createServiceClock();
    const follow = { dispatcher: clock.settings, retry: clock.settings };
    posthorn = await startPosthorn({ RETRY_DELAYS: '5s,1s,1s' }, follow);
    endpoints = await Promise.all([0, 1, 3, Infinity].map(startRefusingEndpoint));
    const targets = await Promise.all(endpoints.map(({ url }) => posthorn.api.createTarget(url)));
    webhookIds = targets.map(({ webhookId }) => webhookId);
  }, 120_000);

  afterEach(async () => {
    await load?.stop();
    clock.setAheadBy(0);
  });

  afterAll(async () => {
    await Promise.all(endpoints.map((each) => each.close()));
    await posthorn.stop();
    clock.remove();
  }, 60_000);

  const arrivalsOf = ({ messageId }: ShownDelivery): readonly number[] =>
    endpoints.flatMap(({ arrivalsMs }) => arrivalsMs.get(messageId) ?? []);

  /** By the clock of the service that released it or, when that was set back meanwhile, by the time that passed. */
  function hasEarly(delivery: ShownDelivery): boolean {
    const arrivals = arrivalsOf(delivery);
    return waitsMs(delivery).some((waitMs, index) => {
      const passedMs = (arrivals[index + 1] ?? 0) - (arrivals[index] ?? 0);
      return Math.max(waitMs, passedMs) < (DELAYS_MS[index] ?? Infinity);
    });
  }

  const durationsMs = ({ attempts }: ShownDelivery): number[] =>
    attempts.map(({ createdAt, updatedAt }) => Date.parse(updatedAt) - Date.parse(createdAt));

  it.each([
    ['an hour ahead and back', HOUR_MS],
    ['an hour back and ahead', -HOUR_MS],
  ])(
    'by %s while retries are parked loses no delivery and repeats no attempt',
    async (_name, jumpMs) => {
      const { api } = posthorn;
      load = startLoad(api, webhookIds, 25);
      await load.reaches(200);
      clock.setAheadBy(jumpMs);
      const before = load.sent();
      await load.reaches(400);
      const [duringMessages, first] = await Promise.all([
        sendMany(api, webhookIds, 5),
        untilFinal(api, before, AWAKE_WITHIN_MS),
      ]);
      clock.setAheadBy(0);
      await load.reaches(load.sent().length + 200);
      const sent = [...(await load.stop()).slice(before.length), ...duringMessages];
      const deliveries = [...first, ...(await untilFinal(api, sent, AWAKE_WITHIN_MS))];

      const dead = deliveries.filter(({ webhookId }) => webhookId === webhookIds.at(-1));
      const well = deliveries.filter(({ webhookId }) => webhookId !== webhookIds.at(-1));
      expect(well.filter(({ status }) => status !== 'delivered')).toEqual([]);
      expect(dead.filter(({ status }) => status !== 'exhausted')).toEqual([]);
      expect(deliveries.filter((each) => arrivalsOf(each).length !== each.attemptCount)).toEqual(
        [],
      );
      expect(dead.filter(({ attemptCount }) => attemptCount !== 4)).toEqual([]);
      expect(deliveries.flatMap(durationsMs).filter((ms) => ms < 0)).toEqual([]);
      expect(deliveries.filter(hasEarly)).toEqual([]);
    },
    300_000,
  );
});
