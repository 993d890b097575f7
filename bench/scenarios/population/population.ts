import { Redis } from 'ioredis';
import { requiredAt } from '@posthorn/domain/required.ts';
import { createRandom } from '../../../test/support/samples/seeded-random.ts';
import { createGatewayClient } from '../../load/gateway-client.ts';
import { closedLoop, type Load, openLoop } from '../../load/loops.ts';
import {
  addressOf,
  apiKeyOf,
  appIdOf,
  createPicker,
  type Population,
  storePopulation,
} from '../../load/population.ts';
import { startReceivers } from '../../load/receivers.ts';
import { readWork, workBetween } from '../../measure/store-work.ts';
import { type Bench, defineScenario, type ScenarioResult } from '../../scenario.ts';
import { openStores, type OpenStores } from '../../stack/open-stores.ts';
import { CONNECTIONS } from '../warm-up.ts';
import { populationGoals, populationTables } from './report.ts';

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
    const wanted = {
      ...options,
      'working-set': Math.min(options['working-set'], options.webhooks),
    };
    const stores = await openStores(bench.stack.addresses);
    const redis = new Redis(bench.stack.addresses.redisUrl);
    const receivers = await startReceivers({
      // The population has URLs of its own.
      endpoints: 0,
      servers: wanted.origins,
      listenOn: addressOf,
      behaviourOf: () => 'answers',
      note: bench.arrivals.note,
    });
    const traffic = createTraffic(bench, wanted);
    try {
      const { db } = stores.mongo;
      const { stackDir } = bench.stack;
      await storePopulation(wanted, { ...bench, stackDir, db, vault: stores.vault });
      return await measure({ bench, stores, redis, traffic }, wanted);
    } finally {
      await traffic.close();
      receivers.close();
      redis.disconnect();
      await stores.close();
    }
  },
});

interface Wanted extends Population {
  'working-set': number;
  distribution: 'uniform' | 'zipf';
  exponent: number;
  rate: number;
  seconds: number;
  warmup: number;
}

/** The messages to the working set, which are sent as the companies of their webhooks. */
function createTraffic({ stack, signal }: Bench, wanted: Wanted) {
  const { companies, 'working-set': workingSet } = wanted;
  const clients = stack.gatewayUrls.map((baseUrl) =>
    createGatewayClient({ ...stack.credentials, baseUrl }),
  );
  const seen = clients.map(() => new Uint8Array(workingSet));
  let firsts = 0;
  const through = (gatewayOf: () => number): Load => ({
    send: (webhook) => {
      const gateway = gatewayOf();
      const seenHere = requiredAt(seen, gateway, 'gateway');
      if (seenHere[webhook] === 0) firsts += 1;
      seenHere[webhook] = 1;
      const client = requiredAt(clients, gateway, 'gateway');
      return client.sendToAppAs(apiKeyOf(webhook % companies), appIdOf(webhook));
    },
    endpoints: workingSet,
    signal,
  });
  let sent = 0;
  return {
    throughOne: clients.map((_, gateway) => through(() => gateway)),
    /** The gateways get messages in turn, as behind a load balancer. */
    throughAll: through(() => sent++ % clients.length),
    /** Returns how many messages were the first one of their webhook at their gateway. */
    firsts: () => firsts,
    close: () => Promise.all(clients.map((client) => client.close())),
  };
}

interface MeasureDeps {
  bench: Bench;
  stores: OpenStores;
  redis: Redis;
  traffic: ReturnType<typeof createTraffic>;
}

/** Before the measurement, at its rate: the group commit takes some seconds to adapt to it. */
const RUN_IN_SECONDS = 10;

async function measure(deps: MeasureDeps, wanted: Wanted): Promise<ScenarioResult> {
  const { bench, stores, redis, traffic } = deps;
  const { companies, 'working-set': workingSet, distribution, rate, seconds } = wanted;
  await sendToEach(deps, wanted.warmup);
  const exponent = distribution === 'zipf' ? wanted.exponent : 0;
  const endpointOf = createPicker({ companies, workingSet, exponent }, createRandom(1));
  const load: Load = { ...traffic.throughAll, endpointOf };
  await openLoop(load, { ratePerSecond: rate, seconds: RUN_IN_SECONDS });
  const admin = stores.mongo.connection.getClient().db().admin();
  const sources = { admin, redis, opsUrls: bench.stack.opsUrls };
  const firstsBefore = traffic.firsts();
  const before = await readWork(sources);
  const phase = await bench.measure({
    name: `${rate}/s, ${distribution} over the companies`,
    load: () => openLoop(load, { ratePerSecond: rate, seconds }),
  });
  const after = await readWork(sources);
  const run = { phase, work: workBetween(before, after), metrics: after.metrics };
  const notes = [
    `${workingSet} of ${wanted.webhooks} webhooks of ${companies} companies get messages;`,
    `${traffic.firsts() - firstsBefore} of ${phase.accepted} messages were the first one of their webhook at their gateway.`,
  ];
  return {
    phases: [phase],
    goals: populationGoals(run, distribution),
    tables: populationTables(run, notes),
    extra: { work: [run.work] },
  };
}

/** Sends one message to each webhook of the working set through each gateway, so that caches can have all of them. */
async function sendToEach({ bench, traffic }: MeasureDeps, seconds: number): Promise<void> {
  for (const [gateway, load] of traffic.throughOne.entries()) {
    const { endpoints: messages } = load;
    const { accepted } = await bench.measure({
      name: `warm-up of gateway ${gateway + 1}`,
      load: () => closedLoop(load, { connections: CONNECTIONS, messages, seconds }),
    });
    bench.log(`  ${accepted} of ${messages} webhooks got a message`);
  }
}
