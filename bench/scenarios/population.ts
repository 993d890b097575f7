import { Redis } from 'ioredis';
import { requiredAt } from '@posthorn/domain/required.ts';
import { createRandom } from '../../test/support/samples/seeded-random.ts';
import { createGatewayClient } from '../load/gateway-client.ts';
import { closedLoop, type Load, openLoop } from '../load/loops.ts';
import { addressOf, apiKeyOf, appIdOf, createPicker, storePopulation } from '../load/population.ts';
import { startReceivers } from '../load/receivers.ts';
import { readWork, workBetween } from '../measure/store-work.ts';
import { populationGoals, populationTables } from '../report/population-report.ts';
import { type Bench, defineScenario } from '../scenario.ts';
import { openStores } from '../stack/open-stores.ts';
import { CONNECTIONS } from './flows.ts';

/** Before the measurement, at its rate: the group commit takes some seconds to adapt to it. */
const RUN_IN_SECONDS = 10;

export const population = defineScenario({
  summary: 'a few messages to each of many companies: what each costs every service and store',
  options: {
    companies: { default: 20_000, meaning: 'companies, with a key and a project each' },
    webhooks: { default: 1_000_000, meaning: 'webhooks, each in an app of its own' },
    origins: { default: 2_000, meaning: 'servers that the webhooks are spread over' },
    'working-set': { default: 20_000, meaning: 'webhooks that get messages, of all companies' },
    distribution: {
      default: 'uniform',
      choices: ['uniform', 'zipf'],
      meaning: 'of the messages over the companies: uniform or zipf',
    },
    exponent: { default: 1, meaning: 'of zipf: the n-th company gets 1 / n ** exponent' },
    rate: { default: 200, meaning: 'messages per second' },
    seconds: { default: 60, meaning: 'seconds of the measurement' },
    warmup: { default: 60, meaning: 'most seconds for one message to each of them, by gateway' },
    gateways: { default: 1, meaning: 'processes of the gateway, which get messages in turn' },
    dispatchers: { default: 1, meaning: 'processes of the dispatcher' },
  },
  processesOf: (service, { gateways, dispatchers }) =>
    ({ gateway: gateways, dispatcher: dispatchers, retry: 1 })[service],
  async run(bench, options) {
    const { webhooks, companies, distribution, rate, seconds } = options;
    const workingSet = Math.min(options['working-set'], webhooks);
    const { stack, arrivals } = bench;
    const stores = await openStores(stack.addresses);
    const { db, connection } = stores.mongo;
    const redis = new Redis(stack.addresses.redisUrl);
    const receivers = await startReceivers({
      // The population has URLs of its own.
      endpoints: 0,
      servers: options.origins,
      listenOn: addressOf,
      behaviourOf: () => 'answers',
      note: arrivals.note,
    });
    const gateways = openGateways(bench, { companies, workingSet });
    try {
      await storePopulation(options, { ...bench, ...stack, db, vault: stores.vault });
      await gateways.warmUp(options.warmup);
      const exponent = distribution === 'zipf' ? options.exponent : 0;
      const endpointOf = createPicker({ companies, workingSet, exponent }, createRandom(1));
      const load: Load = { ...gateways.inTurn(), endpointOf };
      await openLoop(load, { ratePerSecond: rate, seconds: RUN_IN_SECONDS });
      const admin = connection.getClient().db().admin();
      const sources = { admin, redis, opsUrls: stack.opsUrls };
      const firsts = gateways.firsts();
      const before = await readWork(sources);
      const phase = await bench.measure({
        name: `${rate}/s, ${distribution} over the companies`,
        load: () => openLoop(load, { ratePerSecond: rate, seconds }),
      });
      const after = await readWork(sources);
      const run = { phase, work: workBetween(before, after), metrics: after.metrics };
      const notes = [
        `${workingSet} of ${webhooks} webhooks of ${companies} companies get messages;`,
        `${gateways.firsts() - firsts} of ${phase.accepted} messages were the first one of their webhook at their gateway.`,
      ];
      return {
        phases: [phase],
        goals: populationGoals(run, distribution),
        tables: populationTables(run, notes),
        extra: { work: [run.work] },
      };
    } finally {
      await gateways.close();
      receivers.close();
      redis.disconnect();
      await stores.close();
    }
  },
});

/** Sends messages to the working set, each as the company of its webhook. */
function openGateways(
  { stack, signal, measure, log }: Bench,
  { companies, workingSet }: { companies: number; workingSet: number },
) {
  const gateways = stack.gatewayUrls.map((baseUrl) => ({
    client: createGatewayClient({ ...stack.credentials, baseUrl }),
    seen: new Uint8Array(workingSet),
  }));
  let firsts = 0;
  const through = (next: () => number): Load => ({
    send: (webhook) => {
      const { client, seen } = requiredAt(gateways, next(), 'gateway');
      if (seen[webhook] === 0) firsts += 1;
      seen[webhook] = 1;
      return client.sendToAppAs(apiKeyOf(webhook % companies), appIdOf(webhook));
    },
    endpoints: workingSet,
    signal,
  });
  let sent = 0;
  return {
    /** One message to each webhook through each gateway, so that caches can have all of them. */
    async warmUp(seconds: number): Promise<void> {
      const loop = { connections: CONNECTIONS, messages: workingSet, seconds };
      for (const gateway of gateways.keys()) {
        const name = `warm-up of gateway ${gateway + 1}`;
        const load = through(() => gateway);
        const { accepted } = await measure({ name, load: () => closedLoop(load, loop) });
        log(`  ${accepted} of ${workingSet} webhooks got a message`);
      }
    },
    /** As behind a load balancer. */
    inTurn: () => through(() => sent++ % gateways.length),
    /** How many messages were the first one of their webhook at their gateway. */
    firsts: () => firsts,
    close: () => Promise.all(gateways.map(({ client }) => client.close())),
  };
}
