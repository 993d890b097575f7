import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { ENTRIES } from '../../../deploy/posthorn.ts';
import { newEncryptionKey } from '../../../deploy/setup/create-encryption-keys.ts';
import { createApiClient, type ApiClient } from '../api/api-client.ts';
import { createNamespace, type Namespace } from './namespace.ts';
import { loginOf } from './secured-logins.ts';
import { askSetup, setUp } from './setup.ts';
import {
  SERVICES,
  startProgram,
  untilReady,
  type Ended,
  type ProgramProcess,
  type Running,
  type ServiceName,
  type UsualService,
} from './service-process.ts';

export { SERVICES, type ServiceName, type UsualService } from './service-process.ts';

interface Addressed {
  name: ServiceName;
  opsUrl: string;
}

/** A service in the process of the test. */
export interface RunningService extends Running, Addressed {}

/** A service in a process of its own, for stories that kill or freeze it, change its clock, or measure its memory. */
export interface ServiceProcess extends ProgramProcess, Addressed {}

/** A company of a running Posthorn that no other test file uses. */
export interface OwnCompany {
  api: ApiClient;
  baseUrl: string;
  apiKey: string;
  companyId: string;
  env: Namespace & Record<string, string>;
  /** Starts one more service in the process of the test; a gateway on the port of the first unless PORT is given. */
  start: (name: ServiceName, settings?: Record<string, string>) => Promise<RunningService>;
  /** The same in a process of its own. */
  startProcess: (name: ServiceName, settings?: Record<string, string>) => Promise<ServiceProcess>;
  /** Stops every service that was started for this test file. */
  stop: () => Promise<void>;
}

/** The three services on the stack, in a namespace of their own; `Processes` are those that are processes. */
export type Posthorn<Processes extends UsualService = never> = OwnCompany & {
  [Name in UsualService]: Name extends Processes ? ServiceProcess : RunningService;
} & {
  /** Stops every service, and leaves the database as it is. */
  stopServices: () => Promise<void>;
};

export const LOCAL = {
  EGRESS_ALLOW_LOOPBACK: 'true',
  EGRESS_ALLOW_HTTP: 'true',
  // The fewest that two dispatchers share; a broker and each consumer work for every one.
  TOPIC_PARTITIONS: '2',
  TOPIC_REPLICATION: '1',
  // Few and short, so that no test waits for the last one; each topic takes time to create.
  DEFERRAL_DELAYS: '100ms,1s,8s,1m',
};

interface PosthornOptions<Processes extends UsualService> {
  /** The services that get a process of their own; the others start in the process of the test. */
  processes?: readonly Processes[];
  /** Settings of single services. */
  apart?: Partial<Record<UsualService, Record<string, string>>>;
}

type Named = Record<UsualService, ServiceProcess>;

/** Creates topics, indexes and a company, and starts the three services. */
export async function startPosthorn<Processes extends UsualService = never>(
  settings: Record<string, string> = {},
  { processes = [], apart = {} }: PosthornOptions<Processes> = {},
): Promise<Posthorn<Processes>> {
  const [port = 0] = await freePorts(1);
  const ports = { PORT: String(port), ENCRYPTION_KEYS: newEncryptionKey() };
  const { name: database } = await askSetup<{ name: string }>('take-database', {});
  const namespace = createNamespace(process.env, database);
  const env = { ...namespace, ...LOCAL, ...ports, ...settings };
  const { companyId, apiKey } = await setUp({ env, company: 'Test', isNew: true });
  const services = createServices((name) => ({
    ...env,
    ...(name !== 'ingest' && apart[name]),
  }));
  const areProcesses = new Set<UsualService>(processes);
  const started = await startAll(
    SERVICES.map((name) => (areProcesses.has(name) ? services.startProcess : services.start)(name)),
  );
  const byName = Object.fromEntries(started.map((service) => [service.name, service])) as Named;
  const baseUrl = `http://127.0.0.1:${port}`;
  const api = createApiClient(baseUrl, apiKey);
  const own = { api, baseUrl, apiKey, companyId, env, ...services };
  const stop = async (): Promise<void> => {
    await services.stop();
    await askSetup('give-back-database', { name: database });
  };
  return { ...own, ...byName, stop, stopServices: services.stop };
}

/** Returns what starts services with the settings of an installation, and stops all of them. */
export function createServices(
  envOf: (name: ServiceName) => Record<string, string>,
): Pick<OwnCompany, 'start' | 'startProcess' | 'stop'> {
  const running: RunningService[] = [];
  const kept = <Service extends RunningService>(service: Service): Service => {
    running.push(service);
    return service;
  };
  return {
    start: async (name, settings) => kept(await startInTest(name, { ...envOf(name), ...settings })),
    startProcess: async (name, settings) =>
      kept(await startProcess(name, { ...envOf(name), ...settings })),
    async stop() {
      await Promise.all(running.filter((each) => each.isRunning()).map((each) => each.stop()));
    },
  };
}

export const ADMIN = 'services/admin/src/main.ts';

/** Starts one process of a service and waits until it is ready. */
export async function startProcess(
  name: ServiceName,
  env: Record<string, string>,
): Promise<ServiceProcess> {
  const [opsPort = 0] = await freePorts(1);
  const service = startProgram(ENTRIES[name], [], {
    ...loginOf(name, env),
    OPS_PORT: String(opsPort),
  });
  try {
    await untilReady(service, opsPort);
  } catch (error) {
    await killHard(service);
    throw error;
  }
  return { ...service, name, opsUrl: `http://127.0.0.1:${opsPort}` };
}

/** Starts a service in the process of the test and waits until it is ready. */
async function startInTest(
  name: ServiceName,
  env: Record<string, string>,
): Promise<RunningService> {
  // Files that start processes only need not load the services.
  const loading = import('./hosted-service.ts');
  const [{ startHosted }, [opsPort = 0]] = await Promise.all([loading, freePorts(1)]);
  const own = { ...loginOf(name, env), OPS_PORT: String(opsPort) };
  const service = startHosted(name, { ...process.env, ...own });
  try {
    await untilReady(service, opsPort);
  } catch (error) {
    await service.stop();
    throw error;
  }
  return { ...service, name, opsUrl: `http://127.0.0.1:${opsPort}` };
}

/** Kills a process so that no handler runs, as a crash or the kernel would. */
export async function killHard(service: ProgramProcess): Promise<Ended> {
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
