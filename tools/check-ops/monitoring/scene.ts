import { mkdtempSync, rmSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { withSetup } from '../../../test/runner/serve-setup.ts';
import { withStack } from '../../../test/runner/with-stack.ts';
import {
  SERVICES,
  startPosthorn,
  type OwnCompany,
  type Posthorn,
  type RunningService,
  type UsualService,
} from '../../../test/support/process/posthorn.ts';
import {
  failing as failingAtFirst,
  startReceiver,
  type Receiver,
} from '../../../test/support/receivers/receiver.ts';
import { freePorts } from '../../local-stack/machine/ports.ts';
import { failOnExit, startChild } from '../../local-stack/processes/child.ts';
import { waitUntil } from '../../local-stack/waiting.ts';
import { pathOf } from '../programs/ensure-programs.ts';
import { ROOT } from '../programs/run-program.ts';
import { PROMETHEUS } from '../promtool.ts';

/** A Posthorn with a canary, watched by a Prometheus. */
export interface Scene {
  posthorn: Posthorn<UsualService>;
  prometheus: PrometheusServer;
  /** Webhooks of one app: the first hangs, the second fails at first, all others respond at once. */
  webhookIds: readonly string[];
  /** From now on, those others respond after this time. */
  respondAfter: (latencyMs: number) => void;
  /** Starts a dispatcher with other settings, in place of one that has stopped. */
  startDispatcher: (settings: Record<string, string>) => Promise<void>;
}

const ENDPOINTS = 100;

/** Starts the stores on free ports, Posthorn, 100 endpoints and Prometheus; stops all of them after the work. */
export async function withScene(work: (scene: Scene) => Promise<void>): Promise<void> {
  const before = { ...process.env };
  try {
    await withStack(async (stack) => {
      Object.assign(process.env, stack);
      await withSetup(async (setup) => {
        Object.assign(process.env, setup);
        await withPosthorn(work);
      });
    }, false);
  } finally {
    process.env = before;
  }
}

async function withPosthorn(work: (scene: Scene) => Promise<void>): Promise<void> {
  // As in production, except that a retry comes while the check runs.
  const settings = { RETRY_DELAYS: '2s,1h', DEFERRAL_DELAYS: '1s,5s,15s,1m,5m,30m,2h,12h' };
  const posthorn = await startPosthorn(settings, { processes: SERVICES });
  const receivers = await startReceivers();
  try {
    const canary = await startCanary(posthorn);
    const webhookIds = await createWebhooks(posthorn, receivers);
    const respondAfter = (latencyMs: number): void => {
      receivers.good.answerWith((response) => {
        setTimeout(() => response.writeHead(200).end(), latencyMs);
      });
    };
    await withPrometheus(
      [posthorn.gateway, posthorn.dispatcher, posthorn.retry, canary],
      async (prometheus) => {
        const startDispatcher: Scene['startDispatcher'] = async (changed) => {
          const dispatcher = await posthorn.startProcess('dispatcher', changed);
          prometheus.watch(jobOf(dispatcher), [addressOf(dispatcher)]);
        };
        await work({ posthorn, prometheus, webhookIds, respondAfter, startDispatcher });
      },
    );
  } finally {
    await posthorn.stop();
    await Promise.all(Object.values(receivers).map((receiver) => receiver.close()));
  }
}

/** The canary needs the key of a company, so it runs in a second retry process. */
async function startCanary({ startProcess, apiKey, baseUrl }: OwnCompany): Promise<RunningService> {
  const [port = 0] = await freePorts(1);
  return startProcess('retry', {
    CANARY_API_KEY: apiKey,
    CANARY_GATEWAY_URL: baseUrl,
    CANARY_RECEIVER_URL: `http://127.0.0.1:${port}/`,
    CANARY_PORT: String(port),
  });
}

type Receivers = Record<'hanging' | 'failing' | 'good', Receiver>;

async function startReceivers(): Promise<Receivers> {
  const [hanging, failing, good] = await Promise.all([
    startReceiver(),
    startReceiver(),
    startReceiver(),
  ]);
  hanging.answerWith(() => undefined);
  failing.answerWith(failingAtFirst(1));
  return { hanging, failing, good };
}

async function createWebhooks({ api }: Posthorn, receivers: Receivers): Promise<string[]> {
  const { appId, webhookId } = await api.createTarget(receivers.hanging.url);
  const create = async (url: string): Promise<string> => {
    const { status, body } = await api.post('/webhooks', { url, appId });
    if (status !== 201) throw new Error(`a webhook was refused: ${JSON.stringify(body)}`);
    return (body.data as { id: string }).id;
  };
  const webhookIds = [webhookId, await create(receivers.failing.url)];
  while (webhookIds.length < ENDPOINTS) {
    // A path of its own makes it an endpoint of its own.
    webhookIds.push(await create(`${receivers.good.url}/${webhookIds.length}`));
  }
  return webhookIds;
}

async function withPrometheus(
  services: readonly RunningService[],
  work: (prometheus: PrometheusServer) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-prometheus-'));
  const targets = Object.groupBy(services, jobOf);
  const prometheus = await startPrometheus(
    folder,
    Object.fromEntries(
      Object.entries(targets).map(([job, members = []]) => [job, members.map(addressOf)]),
    ),
  );
  try {
    await work(prometheus);
  } finally {
    await prometheus.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function jobOf({ name }: RunningService): string {
  return `posthorn-${name}`;
}

function addressOf({ opsUrl }: RunningService): string {
  return new URL(opsUrl).host;
}

const FOLDER = join(ROOT, 'deploy/prometheus');
const TIMEOUT_MS = 10_000;

/** A value of a series, with the labels that the query left. */
interface Sample {
  labels: Record<string, string>;
  value: number;
}

export interface PrometheusServer {
  /** Queries the present value. */
  query: (expr: string) => Promise<Sample[]>;
  /** Names of the alerts that fire now, each once. */
  firingAlerts: () => Promise<string[]>;
  /** From the next scrape on, a job has these addresses. */
  watch: (job: string, addresses: readonly string[]) => void;
  stop: () => Promise<void>;
}

const configSchema = z.looseObject({
  rule_files: z.array(z.string()),
  scrape_configs: z.array(z.looseObject({ job_name: z.string() })),
});
const samplesSchema = z.object({
  data: z.object({
    result: z.array(
      z.object({
        metric: z.record(z.string(), z.string()),
        value: z.tuple([z.number(), z.string()]),
      }),
    ),
  }),
});
const alertsSchema = z.object({
  data: z.object({
    alerts: z.array(z.object({ state: z.string(), labels: z.object({ alertname: z.string() }) })),
  }),
});

/**
 * Starts Prometheus with the configuration and rules of `deploy/prometheus`. `targets` has the address of each job, in
 * place of the names that only compose knows. Data and log are in `folder`.
 */
async function startPrometheus(
  folder: string,
  targets: Readonly<Record<string, readonly string[]>>,
): Promise<PrometheusServer> {
  const [port = 0] = await freePorts(1);
  const address = `127.0.0.1:${port}`;
  const configFile = join(folder, 'prometheus.json');
  const { config, jobs } = configIn(folder);
  writeFileSync(configFile, config);
  const watch: PrometheusServer['watch'] = (job, addresses) => {
    writeFileSync(targetsFile(folder, job), JSON.stringify([{ targets: addresses }]));
  };
  for (const job of jobs) watch(job, targets[job] ?? []);
  const child = startChild({
    name: 'prometheus',
    command: pathOf(PROMETHEUS) ?? PROMETHEUS.name,
    args: [
      `--config.file=${configFile}`,
      `--storage.tsdb.path=${join(folder, 'prometheus')}`,
      `--web.listen-address=${address}`,
    ],
    port,
    logPath: join(folder, 'prometheus.log'),
    stopTimeoutMs: TIMEOUT_MS,
  });
  const isReady = async (): Promise<boolean> => {
    const response = await fetch(`http://${address}/-/ready`).catch(() => null);
    return response?.status === 200;
  };
  await failOnExit(child, waitUntil({ what: 'Prometheus', timeoutMs: 60_000 }, isReady));
  return { ...createClient(`http://${address}`), watch, stop: () => child.stop() };
}

/** Returns the configuration whose targets are read from files in this folder, again whenever they change. */
function configIn(folder: string): { config: string; jobs: string[] } {
  const config = configSchema.parse(parse(readFileSync(join(FOLDER, 'prometheus.yaml'), 'utf8')));
  const jobs = config.scrape_configs.map(({ job_name: job }) => job);
  // YAML is a superset of JSON.
  const text = JSON.stringify({
    ...config,
    rule_files: config.rule_files.map((file) => join(FOLDER, file)),
    scrape_configs: jobs.map((job) => ({
      job_name: job,
      file_sd_configs: [{ files: [targetsFile(folder, job)] }],
    })),
  });
  return { config: text, jobs };
}

function targetsFile(folder: string, job: string): string {
  return join(folder, `${job}.json`);
}

function createClient(url: string): Pick<PrometheusServer, 'query' | 'firingAlerts'> {
  async function get(path: string): Promise<unknown> {
    const response = await fetch(url + path, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const text = await response.text();
    if (!response.ok) throw new Error(`Prometheus answered ${response.status}: ${text}`);
    return JSON.parse(text);
  }
  return {
    async query(expr) {
      const found = samplesSchema.parse(
        await get(`/api/v1/query?query=${encodeURIComponent(expr)}`),
      );
      return found.data.result.map(({ metric: labels, value: [, value] }) => ({
        labels,
        value: Number(value),
      }));
    },
    async firingAlerts() {
      const { alerts } = alertsSchema.parse(await get('/api/v1/alerts')).data;
      const firing = alerts.filter(({ state }) => state === 'firing');
      return [...new Set(firing.map(({ labels }) => labels.alertname))].sort();
    },
  };
}
