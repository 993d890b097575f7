import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { freePorts } from '../../local-stack/machine/ports.ts';
import { failOnExit, startChild } from '../../local-stack/processes/child.ts';
import { waitUntil } from '../../local-stack/waiting.ts';
import { pathOf } from '../programs/needed-programs.ts';
import { ROOT } from '../programs/run-program.ts';
import { PROMETHEUS } from '../prometheus/programs.ts';

const FOLDER = join(ROOT, 'deploy/prometheus');
const TIMEOUT_MS = 10_000;

/** A value of a series, with the labels that the query left. */
export interface Sample {
  labels: Record<string, string>;
  value: number;
}

export interface PrometheusServer {
  /** Asks for the present value. */
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
export async function startPrometheus(
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
