import http from 'node:http';
import { UsageFailure } from './failures.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** A gateway on this machine is asked directly, as by Go: the proxy would reach another machine by these names. */
const THIS_MACHINE = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Sends all requests of `fetch` through the proxies of the environment: HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in upper or
 * lower case. What `listen` forwards has agents of its own and stays on this machine. Returns a function that ends it.
 * Throws a UsageFailure for an address that is none, without showing it: it may have a password.
 */
export function useProxies(env: Env): () => void {
  const [httpProxy, httpsProxy] = [proxyOf(env, 'HTTP_PROXY'), proxyOf(env, 'HTTPS_PROXY')];
  const isSet = httpProxy !== undefined || httpsProxy !== undefined;
  // Earlier versions of Node have no such function.
  if (!isSet || !('setGlobalProxyFromEnv' in http)) return () => undefined;
  return http.setGlobalProxyFromEnv({
    ...(httpProxy !== undefined && { http_proxy: httpProxy }),
    ...(httpsProxy !== undefined && { https_proxy: httpsProxy }),
    no_proxy: [setting(env, 'NO_PROXY') ?? [], THIS_MACHINE].flat().join(),
  });
}

/** An address without a scheme is of http, as for curl. */
function proxyOf(env: Env, name: string): string | undefined {
  const given = setting(env, name);
  if (given === undefined) return undefined;
  const address = given.includes('://') ? given : `http://${given}`;
  if (/^https?:/i.test(address) && URL.canParse(address)) return address;
  throw new UsageFailure(`${name} must be an address such as http://proxy.example.com:3128`);
}

/** As curl and Node, the lower case counts first. An empty variable counts as none. */
function setting(env: Env, name: string): string | undefined {
  return [env[name.toLowerCase()], env[name]].find((value) => value !== undefined && value !== '');
}
