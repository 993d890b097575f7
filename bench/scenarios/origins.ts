import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext, type SecureContext } from 'node:tls';
import { authority, issuedBy } from '../../test/support/receivers/self-signed.ts';
import { closedLoop, type Load, openLoop } from '../load/loops.ts';
import { addressOf, apiKeyOf, appIdOf, storePopulation } from '../load/population.ts';
import { type ReceiverCounts, startReceivers } from '../load/receivers.ts';
import { rounded } from '../measure/figures.ts';
import type { Phase } from '../measure/phase.ts';
import { type MemorySample, watchMemory } from '../measure/watch-memory.ts';
import { watchPeaks } from '../measure/watch-usage.ts';
import { atLeast, atMost, type Goal, ratio } from '../report/report.ts';
import { type Bench, defineScenario } from '../scenario.ts';
import { openStores } from '../stack/open-stores.ts';
import { CONNECTIONS } from './flows.ts';

export const origins = defineScenario({
  summary: 'many origins, over http and over TLS: CPU, handshakes and memory of connections',
  options: {
    origins: { default: 2_000, meaning: 'origins, each with an address and a webhook of its own' },
    rate: { default: 300, meaning: 'messages per second, to one origin after the other' },
    seconds: { default: 20, meaning: 'seconds of each measurement' },
    schemes: {
      default: 'both',
      choices: ['both', 'http', 'https'],
      meaning: 'both, http or https',
    },
  },
  environment: () => ({ NODE_EXTRA_CA_CERTS: trust().caFile }),
  async run(bench, { schemes, ...wanted }) {
    const runs: Run[] = [];
    await store(bench, wanted.origins);
    try {
      for (const scheme of ['http', 'https'] as const) {
        if (schemes === 'both' || schemes === scheme) {
          runs.push(await measureScheme(bench, { ...wanted, scheme }));
        }
      }
    } finally {
      trust().forget();
    }
    const rowsOf = (rowOf: (run: Run) => object) =>
      Object.fromEntries(runs.map((run) => [run.phase.name, rowOf(run)] as const));
    return {
      phases: runs.map(({ phase }) => phase),
      goals: goalsOf(runs),
      tables: [
        {
          title: 'Connections, as the receivers saw them',
          rows: rowsOf(({ seen, dispatcherMiB, phase }) => ({
            requests: seen.requests,
            'on a kept connection': seen.requests - seen.connections,
            'resumed handshakes': seen.resumed,
            'full handshakes': seen.full,
            'CPU s per 1,000': phase.cpuSecondsPer1000,
            'dispatcher CPU s per 1,000': phase.parts.dispatcher?.cpuSecondsPer1000 ?? null,
            'dispatcher MiB': dispatcherMiB,
          })),
          notes: [],
        },
        {
          title: 'Memory of the dispatcher at the end, MiB',
          rows: rowsOf(({ memory }) => {
            const {
              residentMiB: resident,
              heapUsedMiB: heap,
              externalMiB: external,
            } = memory ?? {};
            return { resident, heap, external, ...memory?.usedMiB };
          }),
          notes: [],
        },
      ],
    };
  },
});

const COMPANIES = 1_000;

/** An origin has a webhook over http and one over TLS: they are measured one after the other, on the same port. */
async function store(bench: Bench, count: number): Promise<void> {
  const stores = await openStores(bench.stack.addresses);
  const schemeOf = (webhook: number) => (webhook < count ? 'http' : 'https');
  const wanted = { companies: COMPANIES, webhooks: 2 * count, origins: count, schemeOf } as const;
  try {
    const { vault, mongo } = stores;
    await storePopulation(wanted, { ...bench, ...bench.stack, db: mongo.db, vault });
  } finally {
    await stores.close();
  }
}

interface Wanted {
  origins: number;
  rate: number;
  seconds: number;
  scheme: 'http' | 'https';
}

interface Run {
  scheme: 'http' | 'https';
  phase: Phase;
  /** During the phase. */
  seen: ReceiverCounts;
  /** Highest resident memory of the dispatcher since the first message. */
  dispatcherMiB: number | null;
  /** Of the dispatcher, at the end. */
  memory: MemorySample | undefined;
}

/** Before the measurement, at its rate: the group commit takes some seconds to adapt to it. */
const RUN_IN_SECONDS = 5;
const SAMPLE_EVERY_MS = 5_000;

async function measureScheme(bench: Bench, wanted: Wanted): Promise<Run> {
  const { client, arrivals, usage, measure, signal } = bench;
  const { origins: count, rate, seconds, scheme } = wanted;
  const first = scheme === 'https' ? count : 0;
  const receivers = await startReceivers({
    // The population has URLs of its own.
    endpoints: 0,
    servers: 1,
    listenOn: () => ({ host: '0.0.0.0', port: addressOf(0).port }),
    ...(scheme === 'https' && { contextOf: trust().contextOf }),
    behaviourOf: () => 'answers',
    note: (id, webhook) => {
      arrivals.note(id, webhook - first);
    },
  });
  const peaks = watchPeaks(usage);
  const memory = await watchMemory(bench, { service: 'dispatcher', everyMs: SAMPLE_EVERY_MS });
  let sent = 0;
  const load: Load = {
    endpointOf: () => sent++ % count,
    send: (endpoint) => {
      const webhook = first + endpoint;
      return client.sendToAppAs(apiKeyOf(webhook % COMPANIES), appIdOf(webhook));
    },
    endpoints: count,
    signal,
  };
  try {
    await measure({
      name: `one message to each over ${scheme}`,
      load: () => closedLoop(load, { connections: CONNECTIONS, messages: count }),
    });
    await openLoop(load, { ratePerSecond: rate, seconds: RUN_IN_SECONDS });
    const before = receivers.counts();
    const phase = await measure({
      name: `${rate}/s to ${count} origins over ${scheme}`,
      load: () => openLoop(load, { ratePerSecond: rate, seconds }),
    });
    const peakBytes = peaks.take().dispatcher;
    const dispatcherMiB = peakBytes && Math.round(peakBytes / 1_048_576);
    const seen = receivers.counts();
    for (const name of ['requests', 'connections', 'full', 'resumed'] as const) {
      seen[name] -= before[name];
    }
    return { scheme, phase, seen, dispatcherMiB, memory: (await memory.stop()).at(-1) };
  } finally {
    peaks.stop();
    receivers.close();
  }
}

function goalsOf(runs: readonly Run[]): Goal[] {
  const of = (wanted: Run['scheme']) => runs.find(({ scheme }) => scheme === wanted);
  const [http, https] = [of('http'), of('https')];
  const goals: Goal[] = runs.map(({ scheme, dispatcherMiB }) =>
    atMost(`${scheme}: memory of the dispatcher`, 512, 'MiB', dispatcherMiB),
  );
  if (!https) return goals;
  const kept = rounded(100 * (1 - https.seen.full / Math.max(1, https.seen.requests)));
  goals.push(atLeast('connections kept or resumed', 90, '%', kept));
  if (!http) return goals;
  const cpu = ratio(https.phase.cpuSecondsPer1000, http.phase.cpuSecondsPer1000);
  return [...goals, atMost('CPU over TLS as a multiple of that over http', 1.5, '×', cpu)];
}

let trusted: ReturnType<typeof createTrust> | null = null;

/** The authority of this run and the certificates of its origins. */
const trust = () => (trusted ??= createTrust());

const PER_CERTIFICATE = 50;

function createTrust() {
  const issuer = authority('posthorn bench');
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-bench-ca-'));
  /** The certificate of the authority, which the services trust. */
  const caFile = join(folder, 'ca.pem');
  writeFileSync(caFile, issuer.cert);
  const contexts = new Map<string, SecureContext>();
  return {
    caFile,
    /** One for each 50 addresses, so that it has the size of a common certificate: 0.7 kB. */
    contextOf: (address: string): SecureContext => {
      const [, , block = '0', last = '1'] = address.split('.');
      const first = Math.floor((Number(last) - 1) / PER_CERTIFICATE) * PER_CERTIFICATE;
      const key = `127.1.${block}.${first}`;
      const known = contexts.get(key);
      if (known) return known;
      const hostOf = (n: number): string => `127.1.${block}.${first + n + 1}`;
      const more = Array.from({ length: PER_CERTIFICATE - 1 }, (_, n) => hostOf(n + 1));
      const context = createSecureContext(issuedBy(issuer, hostOf(0), ...more));
      contexts.set(key, context);
      return context;
    },
    /** Deletes the file. */
    forget(): void {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
