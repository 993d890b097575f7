import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext, type SecureContext } from 'node:tls';
import { authority, type Authority, issuedBy } from '../../test/support/receivers/self-signed.ts';
import { closedLoop, type Load, openLoop } from '../load/loops.ts';
import { addressOf, apiKeyOf, appIdOf, storePopulation } from '../load/population.ts';
import { type ReceiverCounts, startReceivers } from '../load/receivers.ts';
import type { Phase } from '../measure/phase.ts';
import { type MemorySample, watchMemory } from '../measure/watch-memory.ts';
import { watchPeaks } from '../measure/watch-usage.ts';
import type { Goal } from '../report/report.ts';
import { type Bench, defineScenario } from '../scenario.ts';
import { openStores } from '../stack/open-stores.ts';
import { CONNECTIONS } from './warm-up.ts';

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
    return {
      phases: runs.map(({ phase }) => phase),
      goals: goalsOf(runs),
      tables: [
        {
          title: 'Connections, as the receivers saw them',
          rows: Object.fromEntries(runs.map((run) => [run.phase.name, rowOf(run)])),
          notes: [],
        },
        {
          title: 'Memory of the dispatcher at the end, MiB',
          rows: Object.fromEntries(
            runs.map(({ phase, memory }) => [phase.name, memoryRow(memory)]),
          ),
          notes: [],
        },
      ],
    };
  },
});

const COMPANIES = 1_000;

/** An origin has a webhook over http and one over TLS: they are measured one after the other, on the same port. */
async function store({ stack, signal, log }: Bench, origins: number): Promise<void> {
  const { stackDir, addresses } = stack;
  const stores = await openStores(addresses);
  try {
    await storePopulation(
      {
        companies: COMPANIES,
        webhooks: 2 * origins,
        origins,
        schemeOf: (webhook) => (webhook < origins ? 'http' : 'https'),
      },
      { stackDir, db: stores.mongo.db, vault: stores.vault, signal, log },
    );
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
    const dispatcherMiB = peakBytes === null ? null : Math.round(peakBytes / 1_048_576);
    const seen = difference(receivers.counts(), before);
    return { scheme, phase, seen, dispatcherMiB, memory: (await memory.stop()).at(-1) };
  } finally {
    peaks.stop();
    receivers.close();
  }
}

function difference(after: ReceiverCounts, before: ReceiverCounts): ReceiverCounts {
  return {
    requests: after.requests - before.requests,
    connections: after.connections - before.connections,
    full: after.full - before.full,
    resumed: after.resumed - before.resumed,
  };
}

function rowOf({ seen, dispatcherMiB, phase }: Run): object {
  return {
    requests: seen.requests,
    'on a kept connection': seen.requests - seen.connections,
    'resumed handshakes': seen.resumed,
    'full handshakes': seen.full,
    'CPU s per 1,000': phase.cpuSecondsPer1000,
    'dispatcher CPU s per 1,000': phase.parts.dispatcher?.cpuSecondsPer1000 ?? null,
    'dispatcher MiB': dispatcherMiB,
  };
}

function memoryRow(sample: MemorySample | undefined): object {
  const { residentMiB, heapUsedMiB, externalMiB, usedMiB } = sample ?? {};
  return { resident: residentMiB, heap: heapUsedMiB, external: externalMiB, ...usedMiB };
}

const SAMPLE_EVERY_MS = 5_000;

function goalsOf(runs: readonly Run[]): Goal[] {
  const [http, https] = [runs.find(isOf('http')), runs.find(isOf('https'))];
  const goals: Goal[] = runs.map(({ scheme, dispatcherMiB }) => ({
    name: `${scheme}: memory of the dispatcher`,
    unit: 'MiB',
    atMost: 512,
    measured: dispatcherMiB,
  }));
  if (https) {
    const { requests, full } = https.seen;
    const measured = Math.round((1 - full / Math.max(1, requests)) * 1_000) / 10;
    goals.push({ name: 'connections kept or resumed', unit: '%', atLeast: 90, measured });
  }
  const [cpu, plainCpu] = [https?.phase.cpuSecondsPer1000, http?.phase.cpuSecondsPer1000];
  if (typeof cpu === 'number' && typeof plainCpu === 'number') {
    const measured = Math.round((cpu / plainCpu) * 100) / 100;
    goals.push({
      name: 'CPU over TLS as a multiple of that over http',
      unit: '×',
      atMost: 1.5,
      measured,
    });
  }
  return goals;
}

const isOf =
  (scheme: Run['scheme']) =>
  (run: Run): boolean =>
    run.scheme === scheme;

interface Trust {
  /** The certificate of the authority, which the services trust. */
  caFile: string;
  contextOf: (address: string) => SecureContext;
  /** Deletes the file. */
  forget: () => void;
}

let trusted: Trust | null = null;

/** The authority of this run and the certificates of its origins. */
function trust(): Trust {
  trusted ??= createTrust(authority('posthorn bench'));
  return trusted;
}

function createTrust(issuer: Authority): Trust {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-bench-ca-'));
  const caFile = join(folder, 'ca.pem');
  writeFileSync(caFile, issuer.cert);
  const contexts = new Map<string, SecureContext>();
  return {
    caFile,
    /** One for each 50 addresses, so that it has the size of a common certificate: 0.7 kB. */
    contextOf(address) {
      const [, , block = '0', last = '1'] = address.split('.');
      const first = Math.floor((Number(last) - 1) / PER_CERTIFICATE) * PER_CERTIFICATE;
      const key = `${block}/${first}`;
      const context = contexts.get(key) ?? contextFor(issuer, Number(block), first);
      contexts.set(key, context);
      return context;
    },
    forget: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const PER_CERTIFICATE = 50;

function contextFor(issuer: Authority, block: number, first: number): SecureContext {
  const [host, ...more] = Array.from(
    { length: PER_CERTIFICATE },
    (_, n) => `127.1.${block}.${first + n + 1}`,
  );
  return createSecureContext(issuedBy(issuer, host ?? '', ...more));
}
