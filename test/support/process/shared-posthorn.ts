import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { createApiClient } from '../api/api-client.ts';
import { createCompany } from './companies.ts';
import { startPosthorn, startService } from './posthorn.ts';
import type { OwnCompany, RunningService } from './posthorn.ts';

/** Settings of each Posthorn that test files share, by the folder under `test/e2e` of these files. */
const SETTINGS = {
  /** A delivery that has failed once stays pending. */
  contract: { RETRY_DELAYS: '1h', SOURCE_IPS: '203.0.113.8/32,2001:db8::/48' },
  /** A delivery is exhausted soon, also when an open circuit defers it. */
  'contract-after-retries': { RETRY_DELAYS: '300ms', CIRCUIT_RESET_MS: '100' },
};

export type SharedName = keyof typeof SETTINGS;

/** What a test file must be told of a Posthorn that another process has started. */
type Address = Pick<OwnCompany, 'baseUrl' | 'env'>;

/** The environment variable by which test files find it. */
const variableOf = (name: SharedName): string =>
  `POSTHORN_SHARED_${name.toUpperCase().replaceAll('-', '_')}`;

/** The shared Posthorns that these test files need. */
export function sharedBy(files: readonly string[]): SharedName[] {
  const names = Object.keys(SETTINGS) as SharedName[];
  return names.filter((name) => files.some((file) => file.startsWith(`test/e2e/${name}/`)));
}

export interface Shared {
  /** Tells test files where it is. */
  env: Record<string, string>;
  stop: () => Promise<void>;
  /** Ends it at once. */
  kill: () => void;
}

/** Starts a Posthorn for many test files. */
export async function startShared(name: SharedName): Promise<Shared> {
  const posthorn = await startPosthorn(SETTINGS[name]);
  const { baseUrl, env, stop, gateway, dispatcher, retry } = posthorn;
  const address: Address = { baseUrl, env };
  return {
    env: { [variableOf(name)]: JSON.stringify(address) },
    stop,
    kill() {
      for (const service of [gateway, dispatcher, retry]) service.signal('SIGKILL');
    },
  };
}

/** A company of the shared Posthorn with a gateway that no other test file uses. */
export interface OwnGateway extends OwnCompany {
  gateway: RunningService;
}

/** Creates a company on the shared Posthorn and starts a gateway with these settings, on a port of its own. */
export async function joinWithGateway(
  name: SharedName,
  settings: Record<string, string> = {},
): Promise<OwnGateway> {
  const [shared, [port = 0]] = await Promise.all([joinShared(name), freePorts(1)]);
  const own = { ...settings, PORT: String(port) };
  const gateway = await shared.start('gateway', own);
  const baseUrl = `http://127.0.0.1:${port}`;
  const api = createApiClient(baseUrl, shared.apiKey);
  return { ...shared, env: { ...shared.env, ...own }, api, baseUrl, gateway };
}

/** Creates a company on the shared Posthorn; without one, starts one for this test file alone. */
export async function joinShared(name: SharedName): Promise<OwnCompany> {
  const address = process.env[variableOf(name)];
  if (address === undefined) return startPosthorn(SETTINGS[name]);
  const { baseUrl, env } = JSON.parse(address) as Address;
  const company = await createCompany({ baseUrl, env }, 'Test');
  const started: RunningService[] = [];
  return {
    ...company,
    baseUrl,
    env,
    async start(service, settings = {}) {
      const running = await startService(service, { ...env, ...settings });
      started.push(running);
      return running;
    },
    async stop() {
      await Promise.all(started.map((each) => each.stop()));
    },
  };
}
