import { isIP, type Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import type { EgressPolicy } from '@posthorn/domain/egress/egress-rules.ts';
import { buildConnector } from 'undici';
import { checkedAddresses } from './checked-addresses.ts';
import type { EgressProxy } from './proxy/open-proxy.ts';
import { TunnelError } from './proxy/tunnel-error.ts';
import type { HostResolver } from './resolve-host.ts';

export interface ThroughProxyOptions {
  policy: EgressPolicy;
  connectTimeoutMs: number;
  hosts: HostResolver;
  proxy: EgressProxy;
  secureContext?: SecureContext;
}

/** The proxy is given this many addresses of a host at most, the next one when it cannot reach the one before. */
const MAX_ADDRESSES = 3;

/**
 * Connects through a tunnel of the proxy, for http and https alike, and over TLS to the endpoint inside
 * of it: the proxy sees no request. The name of the endpoint is verified as it is without a proxy.
 */
export function connectThroughProxy(options: ThroughProxyOptions): buildConnector.connector {
  const startTls = buildConnector({
    timeout: options.connectTimeoutMs,
    allowH2: false,
    rejectUnauthorized: true,
    secureContext: options.secureContext,
  });
  return (target, callback) => {
    openTunnel(options, target).then(
      (socket) => {
        if (target.protocol === 'https:') startTls({ ...target, httpSocket: socket }, callback);
        else callback(null, socket);
      },
      (error: unknown) => {
        callback(error as Error, null);
      },
    );
  };
}

async function openTunnel(
  options: ThroughProxyOptions,
  { hostname, protocol, port }: buildConnector.Options,
): Promise<Socket> {
  const portOrDefault = port || (protocol === 'https:' ? '443' : '80');
  const [first, ...others] = await hostsFor(options, hostname);
  let result = await tryTunnel(options.proxy, first, portOrDefault);
  for (const host of others) {
    if (!(result instanceof TunnelError)) break;
    result = await tryTunnel(options.proxy, host, portOrDefault);
  }
  if (result instanceof TunnelError) throw result;
  return result;
}

/**
 * The proxy gets addresses that were checked here, so that it looks nothing up that could lead elsewhere
 * (DNS rebinding). Where it gets the name, it decides where that leads to.
 */
async function hostsFor(
  { policy, hosts, proxy }: ThroughProxyOptions,
  hostname: string,
): Promise<[string, ...string[]]> {
  if (isIP(hostname) || proxy.target === 'name') return [hostname];
  const [first, ...others] = await checkedAddresses(hostname, policy, hosts.resolve);
  const more = others.slice(0, MAX_ADDRESSES - 1).map(({ address }) => address);
  return [first.address, ...more];
}

/** Resolves with the error only when another address may be reached instead. */
async function tryTunnel(
  proxy: EgressProxy,
  host: string,
  port: string,
): Promise<Socket | TunnelError> {
  try {
    return await proxy.openTunnel(`${isIP(host) === 6 ? `[${host}]` : host}:${port}`);
  } catch (error) {
    if (error instanceof TunnelError && error.result === 'unreachable') return error;
    throw error;
  }
}
