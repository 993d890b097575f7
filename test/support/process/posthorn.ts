import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { newEncryptionKey } from '../../../deploy/setup/create-encryption-keys.ts';
import { createApiClient, type ApiClient } from './api-client.ts';
import { createNamespace, type Namespace } from './namespace.ts';
import {
  runProgram,
  startProgram,
  untilReady,
  type Ended,
  type ServiceProcess,
} from './service-process.ts';

export type ServiceName = 'gateway' | 'dispatcher' | 'retry';

export interface RunningService extends ServiceProcess {
  name: ServiceName;
  opsUrl: string;
}

/** The three services on the stack, in a namespace of their own. */
export interface Posthorn {
  api: ApiClient;
  baseUrl: string;
  apiKey: string;
  companyId: string;
  env: Namespace & Record<string, string>;
  gateway: RunningService;
  dispatcher: RunningService;
  retry: RunningService;
  /** Starts one more process of a service; the gateway on the same port as the first. */
  start: (name: ServiceName, settings?: Record<string, string>) => Promise<RunningService>;
  stop: () => Promise<void>;
}

const LOCAL = {
  EGRESS_ALLOW_LOOPBACK: 'true',
  EGRESS_ALLOW_HTTP: 'true',
  TOPIC_PARTITIONS: '4',
  TOPIC_REPLICATION: '1',
  // A short ladder, so that no story waits for a minute; each topic costs time to make.
  DEFERRAL_DELAYS: '100ms,1s,8s',
};

/** Settings of one service that the others must not have. */
export type ApartSettings = Partial<Record<ServiceName, Record<string, string>>>;

/** Makes topics, indexes and a company, then starts what a platform would run. */
export async function startPosthorn(
  settings: Record<string, string> = {},
  apart: ApartSettings = {},
): Promise<Posthorn> {
  const [port = 0] = await freePorts(1);
  const own = { PORT: String(port), ENCRYPTION_KEYS: newEncryptionKey() };
  const env = { ...createNamespace(), ...LOCAL, ...own, ...settings };
  await Promise.all([
    runProgram('deploy/setup/create-topics.ts', [], env),
    runProgram('deploy/setup/create-indexes.ts', [], env),
  ]);
  const company = await runProgram(ADMIN, ['company', 'create', 'Test', '--json'], env);
  const { companyId, apiKey } = JSON.parse(company) as { companyId: string; apiKey: string };

  const running: RunningService[] = [];
  const start: Posthorn['start'] = async (name, changed = {}) => {
    const service = await startService(name, { ...env, ...apart[name], ...changed });
    running.push(service);
    return service;
  };
  const [gateway, dispatcher, retry] = await Promise.all([
    start('gateway'),
    start('dispatcher'),
    start('retry'),
  ]);
  const baseUrl = `http://127.0.0.1:${port}`;
  const api = createApiClient(baseUrl, apiKey);
  const stop = async (): Promise<void> => {
    await Promise.all(running.filter((each) => each.isRunning()).map((each) => each.stop()));
  };
  return { api, baseUrl, apiKey, companyId, env, gateway, dispatcher, retry, start, stop };
}

export const ADMIN = 'services/admin/src/main.ts';

async function startService(
  name: ServiceName,
  env: Record<string, string>,
): Promise<RunningService> {
  const [opsPort = 0] = await freePorts(1);
  const main = `services/${name}/src/main.ts`;
  const service = startProgram(main, [], { ...env, OPS_PORT: String(opsPort) });
  await untilReady(service, opsPort);
  return { ...service, name, opsUrl: `http://127.0.0.1:${opsPort}` };
}

/** As a crash or the kernel would: no handler runs. */
export async function killHard(service: ServiceProcess): Promise<Ended> {
  service.signal('SIGKILL');
  return service.ended;
}
