import {
  type EgressPolicy,
  type EgressRefusal,
  refusalOfAddress,
  refusalOfUrl,
} from '@posthorn/domain/egress.ts';
import type { LookupAddress } from 'node:dns';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { buildConnector } from 'undici';
import { type EgressProxy, TunnelError } from './egress-proxy.ts';
import {
  type HostResolver,
  LookupFailedError,
  type Resolve,
  serverNameOf,
} from './resolve-host.ts';
import { prepareSocket } from './response-heads.ts';

export interface GuardOptions {
  policy: EgressPolicy;
  /** For the connection and the TLS handshake, the look-up of the host included. */
  connectTimeoutMs: number;
  hosts: HostResolver;
  /** Connections go through it; null for none. */
  proxy: EgressProxy | null;
  /** For https; a new one with the defaults for each connection unless given. */
  secureContext?: SecureContext;
  onRefused: (reason: EgressRefusal) => void;
  onOpened: (socket: Socket) => void;
}

/** Node tries the next address after 250 ms by default; connecting to a distant, busy host takes longer. */
const NEXT_ADDRESS_AFTER_MS = 1_000;

/**
 * Connects only to addresses that the policy allows (docs/contract.md C9.10). There are three checks,
 * because each can be bypassed in some way:
 * 1. The URL as written, with scheme, host and port: `lookup` is not called for literal addresses.
 * 2. Every address that the look-up returns: one refused address refuses the host.
 * 3. The remote address of the open socket. Through a proxy this is the proxy's, which is not subject to
 *    the policy: there the proxy gets an address that passed the second check.
 */
export function createGuardedConnect(options: GuardOptions): buildConnector.connector {
  const { policy, hosts, proxy } = options;
  const connect = proxy ? connectThroughProxy({ ...options, proxy }) : connectDirectly(options);

  return (target, callback) => {
    const fail = (error: Error): void => {
      if (error instanceof EgressBlockedError) options.onRefused(error.reason);
      else if (mayHaveMoved(error)) hosts.forget(target.hostname);
      callback(error, null);
    };
    const refusal = refusalOfTarget(target, policy);
    if (refusal) {
      fail(new EgressBlockedError(refusal));
      return;
    }
    connect({ ...target, servername: serverNameOf(target.hostname) }, (...[error, socket]) => {
      if (error) {
        fail(error);
      } else {
        prepareSocket(socket);
        // A server that refuses the client's certificate may say so after the handshake (TLS 1.3). The alert is
        // an error, and then the connection ends. The HTTP client would report only its end.
        socket.once('error', () => socket.destroy());
        options.onOpened(socket);
        callback(null, socket);
      }
    });
  };
}

/** A failed look-up is cached for its own time, and a fault of the proxy says nothing of the endpoint. */
function mayHaveMoved(error: Error): boolean {
  if (error instanceof TunnelError) return error.result !== 'fault';
  return !(error instanceof LookupFailedError);
}

function connectDirectly(options: GuardOptions): buildConnector.connector {
  const connect = openConnector(options);
  return (target, callback) => {
    connect(target, (...[error, socket]) => {
      const problem = error ?? problemOfRemote(socket, options.policy);
      if (problem) {
        socket?.destroy();
        callback(problem, null);
      } else if (socket) {
        callback(null, socket);
      }
    });
  };
}

/** `allowH2` is set here too: undici does not pass its own option to a connector that it is given. */
function openConnector({ policy, connectTimeoutMs, hosts, secureContext }: GuardOptions) {
  return buildConnector({
    timeout: connectTimeoutMs,
    allowH2: false,
    // So that NODE_TLS_REJECT_UNAUTHORIZED cannot turn the check of certificates off.
    rejectUnauthorized: true,
    secureContext,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
    lookup: checkedLookup(policy, hosts.resolve),
  });
}

function refusalOfTarget(
  { protocol, host, hostname }: buildConnector.Options,
  policy: EgressPolicy,
): EgressRefusal | null {
  const url = URL.parse(`${protocol}//${host ?? hostname}`);
  return url ? refusalOfUrl(url, policy) : 'host';
}

/** A socket without a remote address was reset while it was being opened. */
function problemOfRemote(socket: Socket | null, policy: EgressPolicy): Error | null {
  if (socket?.remoteAddress === undefined) {
    return Object.assign(new Error('reset while it was being opened'), { code: 'ECONNRESET' });
  }
  const refusal = refusalOfAddress(socket.remoteAddress, policy);
  return refusal && new EgressBlockedError(refusal);
}

/**
 * The socket connects to one of the checked addresses, without a second look-up that could return
 * another one (DNS rebinding).
 */
function checkedLookup(policy: EgressPolicy, resolve: Resolve): LookupFunction {
  return (hostname, options, callback) => {
    checkedAddresses(hostname, policy, resolve).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all) callback(null, addresses);
        else callback(null, first.address, first.family);
      },
      (error: unknown) => {
        callback(error as NodeJS.ErrnoException, []);
      },
    );
  };
}

/** Deliveries may not go to the destination. The message does not contain the address that it resolved to. */
export class EgressBlockedError extends Error {
  readonly code = 'EGRESS_BLOCKED';
  readonly reason: EgressRefusal;
  constructor(reason: EgressRefusal) {
    super('blocked address');
    this.reason = reason;
  }
}

/**
 * Resolves with the addresses that `resolve` found for a host, one at least. Rejects with EgressBlockedError when the policy
 * refuses one of them, and with LookupFailedError. A cached address is checked each time it is used.
 */
async function checkedAddresses(
  hostname: string,
  policy: EgressPolicy,
  resolve: Resolve,
): Promise<[LookupAddress, ...LookupAddress[]]> {
  const [first, ...others] = await resolve(hostname);
  if (!first || [first, ...others].some(({ address }) => refusalOfAddress(address, policy))) {
    throw new EgressBlockedError('address');
  }
  return [first, ...others];
}

interface ThroughProxyOptions {
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
function connectThroughProxy(options: ThroughProxyOptions): buildConnector.connector {
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
