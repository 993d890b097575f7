import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { newEncryptionKey } from '../../../deploy/setup/create-encryption-keys.ts';
import { createApiClient, type ApiClient } from '../api/api-client.ts';
import { createNamespace, type Namespace } from './namespace.ts';
import { loginOf } from './secured-logins.ts';
import { setUp } from './setup.ts';
import { startProgram, untilReady, type Ended, type ServiceProcess } from './service-process.ts';

export type ServiceName = 'gateway' | 'dispatcher' | 'retry';

export interface RunningService extends ServiceProcess {
  name: ServiceName;
  opsUrl: string;
}

/** A company of a running Posthorn that no other test file uses. */
export interface OwnCompany {
  api: ApiClient;
  baseUrl: string;
  apiKey: string;
  companyId: string;
  env: Namespace & Record<string, string>;
  /** Starts one more process of a service; a gateway on the port of the first unless PORT is given. */
  start: (name: ServiceName, settings?: Record<string, string>) => Promise<RunningService>;
  /** Stops every service that was started for this test file. */
  stop: () => Promise<void>;
}

/** The three services on the stack, in a namespace of their own. */
export interface Posthorn extends OwnCompany {
  gateway: RunningService;
  dispatcher: RunningService;
  retry: RunningService;
}

export const LOCAL = {
  EGRESS_ALLOW_LOOPBACK: 'true',
  EGRESS_ALLOW_HTTP: 'true',
  // The fewest that two dispatchers share; a broker and each consumer work for every one.
  TOPIC_PARTITIONS: '2',
  TOPIC_REPLICATION: '1',
  // Few and short, so that no test waits for the last one; each topic takes time to create.
  DEFERRAL_DELAYS: '100ms,1s,8s,1m',
};

/** Settings of single services. */
type ApartSettings = Partial<Record<ServiceName, Record<string, string>>>;

type Triple = [RunningService, RunningService, RunningService];

/** Creates topics, indexes and a company, and starts the three services. */
export async function startPosthorn(
  settings: Record<string, string> = {},
  apart: ApartSettings = {},
): Promise<Posthorn> {
  const [port = 0] = await freePorts(1);
  const own = { PORT: String(port), ENCRYPTION_KEYS: newEncryptionKey() };
  const env = { ...createNamespace(), ...LOCAL, ...own, ...settings };
  const { companyId, apiKey } = await setUp({ env, company: 'Test', isNew: true });
  const running: RunningService[] = [];
  const start: Posthorn['start'] = async (name, changed = {}) => {
    const service = await startService(name, { ...env, ...apart[name], ...changed });
    running.push(service);
    return service;
  };
  const names = ['gateway', 'dispatcher', 'retry'] as const;
  const [gateway, dispatcher, retry] = (await startAll(names.map((name) => start(name)))) as Triple;
  const baseUrl = `http://127.0.0.1:${port}`;
  const api = createApiClient(baseUrl, apiKey);
  const stop = async (): Promise<void> => {
    await Promise.all(running.filter((each) => each.isRunning()).map((each) => each.stop()));
  };
  return { api, baseUrl, apiKey, companyId, env, gateway, dispatcher, retry, start, stop };
}

export const ADMIN = 'services/admin/src/main.ts';

/** Starts one process of a service and waits until it is ready. */
export async function startService(
  name: ServiceName,
  env: Record<string, string>,
): Promise<RunningService> {
  const [opsPort = 0] = await freePorts(1);
  const main = `services/${name}/src/main.ts`;
  const service = startProgram(main, [], { ...loginOf(name, env), OPS_PORT: String(opsPort) });
  try {
    await untilReady(service, opsPort);
  } catch (error) {
    await killHard(service);
    throw error;
  }
  return { ...service, name, opsUrl: `http://127.0.0.1:${opsPort}` };
}

/** Kills a service so that no handler runs, as a crash or the kernel would. */
export async function killHard(service: ServiceProcess): Promise<Ended> {
  service.signal('SIGKILL');
  return service.ended;
}

interface Stoppable {
  stop: () => Promise<unknown>;
}

/**
 * Waits for all to start. When one fails, stops the others and throws its error: a process that is left
 * keeps the one that started it from ending.
 */
export async function startAll<Started extends Stoppable>(
  starting: readonly Promise<Started>[],
): Promise<Started[]> {
  const results = await Promise.allSettled(starting);
  const failed = results.find((result) => result.status === 'rejected');
  const started = results.flatMap((result) =>
    result.status === 'fulfilled' ? [result.value] : [],
  );
  if (!failed) return started;
  await Promise.all(started.map((each) => each.stop()));
  throw failed.reason;
}
