import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { createApiClient } from '../api/api-client.ts';
import { createCompany } from './companies.ts';
import {
  createServices,
  startPosthorn,
  type OwnCompany,
  type Posthorn,
  type RunningService,
  type ServiceProcess,
} from './posthorn.ts';
import { askSetup } from './setup.ts';

/** Settings of each Posthorn that test files share. */
const SETTINGS = {
  /** A delivery that has failed once stays pending. */
  contract: { RETRY_DELAYS: '1h', SOURCE_IPS: '203.0.113.8/32,2001:db8::/48' },
  /** A delivery is exhausted soon, also when an open circuit defers it. */
  'contract-after-retries': { RETRY_DELAYS: '300ms', CIRCUIT_RESET_MS: '100' },
  /** A delivery has two retries, and there is time to see that it waits for the second one. */
  retries: { RETRY_DELAYS: '1s,4s', CIRCUIT_RESET_MS: '100' },
};

export type SharedName = keyof typeof SETTINGS;

/** What a test file must be told of a Posthorn that another process has started. */
export type Address = Pick<OwnCompany, 'baseUrl' | 'env'>;

export interface SharedPosthorns {
  /** Starts it when it is asked for the first time. */
  addressOf: (name: SharedName) => Promise<Address>;
  stop: () => Promise<void>;
}

/** The Posthorns that test files share, each started in this process for the first of them. */
export function createSharedPosthorns(): SharedPosthorns {
  const started = new Map<SharedName, Promise<Posthorn>>();
  return {
    async addressOf(name) {
      const starting = started.get(name) ?? startPosthorn(SETTINGS[name]);
      started.set(name, starting);
      const { baseUrl, env } = await starting;
      return { baseUrl, env };
    },
    async stop() {
      const all = [...started.values()];
      started.clear();
      // One that did not start has stopped what it had.
      const posthorns = await Promise.allSettled(all);
      const running = posthorns.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
      await Promise.all(running.map((each) => each.stop()));
    },
  };
}

/** Creates a company on the shared Posthorn. */
export async function joinShared(name: SharedName): Promise<OwnCompany> {
  const { baseUrl, env } = await askSetup<Address>('shared', { name });
  const company = await createCompany({ baseUrl, env }, 'Test');
  return { ...company, baseUrl, env, ...createServices(() => env) };
}

/** A company of the shared Posthorn with a gateway that no other test file uses. */
export interface OwnGateway<Service = RunningService> extends OwnCompany {
  gateway: Service;
}

type Settings = Record<string, string>;

/** Creates a company on the shared Posthorn and starts a gateway with these settings, on a port of its own. */
export function joinWithGateway(name: SharedName, settings: Settings = {}): Promise<OwnGateway> {
  return joinWith(name, settings, ({ start }, own) => start('gateway', own));
}

/** The same with a gateway in a process of its own. */
export function joinWithGatewayProcess(
  name: SharedName,
  settings: Settings = {},
): Promise<OwnGateway<ServiceProcess>> {
  return joinWith(name, settings, ({ startProcess }, own) => startProcess('gateway', own));
}

async function joinWith<Service>(
  name: SharedName,
  settings: Settings,
  start: (shared: OwnCompany, own: Settings) => Promise<Service>,
): Promise<OwnGateway<Service>> {
  const [shared, [port = 0]] = await Promise.all([joinShared(name), freePorts(1)]);
  const own = { ...settings, PORT: String(port) };
  const gateway = await start(shared, own);
  const baseUrl = `http://127.0.0.1:${port}`;
  const api = createApiClient(baseUrl, shared.apiKey);
  return { ...shared, env: { ...shared.env, ...own }, api, baseUrl, gateway };
}
