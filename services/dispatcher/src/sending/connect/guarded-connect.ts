import {
  type EgressPolicy,
  type EgressRefusal,
  refusalOfAddress,
  refusalOfUrl,
} from '@posthorn/domain/egress.ts';
import type { LookupAddress } from 'node:dns';
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import type { buildConnector } from 'undici';
import { type EgressProxy, TunnelError } from './egress-proxy.ts';
import {
  type HostResolver,
  LookupFailedError,
  type Resolve,
  serverNameOf,
} from './resolve-host.ts';
import { prepareSocket } from './response-heads.ts';
import type { TlsSessions } from './tls-sessions.ts';

export interface GuardOptions {
  policy: EgressPolicy;
  /** For the connection with the look-up of the host, and for the TLS handshake, each. */
  connectTimeoutMs: number;
  hosts: Pick<HostResolver, 'resolve' | 'forget'>;
  /** Connections go through it; null for none. */
  proxy: EgressProxy | null;
  /** Of https connections. */
  sessions: TlsSessions;
  /** The TLS settings of a webhook; the defaults unless given. */
  tls?: TlsSettings;
  onRefused: (reason: EgressRefusal) => void;
}

/** Connections with other settings share nothing with these. */
interface TlsSettings {
  id: string;
  secureContext: SecureContext;
}

/**
 * Opens a connection for undici. `onOpening` is called with the socket that is being opened, and again with the one that
 * encrypts it. The connection fails when that socket is destroyed with an error. A tunnel of a proxy is opened to its end.
 */
export type GuardedConnect = (
  target: buildConnector.Options,
  callback: Callback,
  onOpening?: OnOpening,
) => void;

type Callback = buildConnector.Callback;

type OnOpening = (socket: Socket) => void;

/** Node tries the next address after 250 ms by default; connecting to a distant, busy host takes longer. */
const NEXT_ADDRESS_AFTER_MS = 1_000;

/**
 * Connects only to addresses that the policy allows (docs/contract.md C9.10). There are three checks,
 * because each can be bypassed in some way:
 * 1. The URL as written, with scheme, host and port: `lookup` is not called for literal addresses.
 * 2. Every address that the look-up returns: one refused address refuses the host.
 * 3. The remote address of the socket, before anything is sent. Through a proxy this is the proxy's, which is not subject to
 *    the policy: there the proxy gets an address that passed the second check.
 */
export function createGuardedConnect(options: GuardOptions): GuardedConnect {
  const { policy, hosts, proxy } = options;
  const reach = proxy ? reachThroughProxy({ ...options, proxy }) : reachDirectly(options);
  const encrypt = createEncrypt(options);

  return (target, callback, onOpening = () => undefined) => {
    const named = { ...target, servername: serverNameOf(target.hostname) };
    const fail = (error: Error): void => {
      if (error instanceof EgressBlockedError) options.onRefused(error.reason);
      else if (mayHaveMoved(error)) hosts.forget(target.hostname);
      callback(error, null);
    };
    const finish: Callback = (...[error, socket]) => {
      if (error) {
        fail(error);
        return;
      }
      prepareSocket(socket);
      // A server that refuses the client's certificate may say so after the handshake (TLS 1.3). The alert is
      // an error, and then the connection ends. The HTTP client would report only its end.
      socket.once('error', () => socket.destroy());
      callback(null, socket);
    };
    const refusal = refusalOfTarget(target, policy);
    if (refusal) {
      fail(new EgressBlockedError(refusal));
      return;
    }
    const onReached: OnReached = (...[error, reached]) => {
      if (error) fail(error);
      else if (target.protocol === 'https:') encrypt(named, reached, { finish, onOpening });
      else finish(null, reached.socket);
    };
    reach(named, onReached, onOpening);
  };
}

/** A failed look-up is cached for its own time, and a fault of the proxy says nothing of the endpoint. */
function mayHaveMoved(error: Error): boolean {
  if (error instanceof TunnelError) return error.result !== 'fault';
  return !(error instanceof LookupFailedError);
}

/** A connection without TLS. */
interface Reached {
  socket: Socket;
  /** The address that it leads to, or the name, if the proxy was given that. */
  address: string;
}

type OnReached = (...result: [null, Reached] | [Error, null]) => void;

type Reach = (target: buildConnector.Options, callback: OnReached, onOpening: OnOpening) => void;

function reachDirectly({ policy, connectTimeoutMs: timeoutMs, hosts }: GuardOptions): Reach {
  const lookup = checkedLookup(policy, hosts.resolve);
  return (target, callback, onOpening) => {
    const socket = connectTcp({
      host: target.hostname,
      port: Number(portOf(target)),
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
      lookup,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_AFTER_MS,
    });
    onOpening(socket);
    let isFound = isIP(target.hostname) !== 0;
    socket.once('lookup', () => (isFound = true));
    untilOpen({ socket, event: 'connect', timeoutMs }, (error) => {
      const address = error ?? addressOf(socket, policy);
      if (typeof address === 'string') {
        callback(null, { socket, address });
        return;
      }
      socket.destroy();
      // A look-up goes on without its connection, and the next attempt uses its answer.
      callback(isFound ? address : new LookupFailedError(address), null);
    });
  };
}

interface Opening {
  socket: Socket;
  event: 'connect' | 'secureConnect';
  timeoutMs: number;
}

/** Calls back once: when the socket is open, or has failed. */
function untilOpen(
  { socket, event, timeoutMs }: Opening,
  callback: (error: Error | null) => void,
): void {
  const timer = setTimeout(() => socket.destroy(timedOut()), timeoutMs);
  const finish = (error: Error | null): void => {
    clearTimeout(timer);
    socket.off('error', finish);
    socket.off(event, onOpen);
    callback(error && isOfTimeout(error) ? timedOut() : error);
  };
  const onOpen = (): void => {
    finish(null);
  };
  socket.on('error', finish);
  socket.on(event, onOpen);
}

const timedOut = (): Error =>
  Object.assign(new Error('not connected in time'), { code: 'ETIMEDOUT' });

/** One of several addresses did not answer. */
function isOfTimeout(error: Error): boolean {
  return (
    error instanceof AggregateError &&
    error.errors.some((each: NodeJS.ErrnoException) => each.code === 'ETIMEDOUT')
  );
}

type Encrypt = (
  target: buildConnector.Options,
  reached: Reached,
  on: { finish: Callback; onOpening: OnOpening },
) => void;

/**
 * One context of OpenSSL serves all connections with the same settings: each takes 13 KiB, and 0.15 ms to make. That of
 * the defaults is made for the first connection.
 */
function createEncrypt({ tls, sessions, connectTimeoutMs: timeoutMs }: GuardOptions): Encrypt {
  let secureContext = tls?.secureContext;
  return (target, reached, { finish, onOpening }) => {
    const { hostname, servername = '' } = target;
    const name = servername || hostname;
    const peer = { settings: tls?.id ?? '', name, address: reached.address, port: portOf(target) };
    const session = sessions.find(peer);
    const socket = connectTls({
      socket: reached.socket,
      // For the check of the certificate; `servername` is also sent.
      host: hostname,
      servername,
      secureContext: (secureContext ??= createSecureContext()),
      ...(session && { session: session.bytes }),
      ALPNProtocols: ['http/1.1'],
      // So that NODE_TLS_REJECT_UNAUTHORIZED cannot turn the check of certificates off.
      rejectUnauthorized: true,
    });
    onOpening(socket);
    sessions.follow(socket, peer, session);
    untilOpen({ socket, event: 'secureConnect', timeoutMs }, (error) => {
      if (error) finish(error, null);
      else finish(null, socket);
    });
  };
}

const KEEP_ALIVE_AFTER_MS = 60_000;

const portOf = ({ port, protocol }: buildConnector.Options): string =>
  port || (protocol === 'https:' ? '443' : '80');

function refusalOfTarget(
  { protocol, host, hostname }: buildConnector.Options,
  policy: EgressPolicy,
): EgressRefusal | null {
  const url = URL.parse(`${protocol}//${host ?? hostname}`);
  return url ? refusalOfUrl(url, policy) : 'host';
}

/** Returns the remote address of an open socket. One without was reset while it was being opened. */
function addressOf({ remoteAddress }: Socket, policy: EgressPolicy): string | Error {
  if (remoteAddress === undefined) {
    return Object.assign(new Error('reset while it was being opened'), { code: 'ECONNRESET' });
  }
  const refusal = refusalOfAddress(remoteAddress, policy);
  return refusal ? new EgressBlockedError(refusal) : remoteAddress;
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

interface ThroughProxyOptions extends GuardOptions {
  proxy: EgressProxy;
}

/** The proxy is given this many addresses of a host at most, the next one when it cannot reach the one before. */
const MAX_ADDRESSES = 3;

/**
 * Connects through a tunnel of the proxy, for http and https alike, and over TLS to the endpoint inside
 * of it: the proxy sees no request. The name of the endpoint is verified as it is without a proxy.
 */
function reachThroughProxy(options: ThroughProxyOptions): Reach {
  return (target, callback) => {
    openTunnel(options, target).then(
      (tunnel) => {
        callback(null, tunnel);
      },
      (error: unknown) => {
        callback(error as Error, null);
      },
    );
  };
}

async function openTunnel(
  options: ThroughProxyOptions,
  target: buildConnector.Options,
): Promise<Reached> {
  const port = portOf(target);
  const [first, ...others] = await hostsFor(options, target.hostname);
  let result = await tryTunnel(options.proxy, first, port);
  for (const host of others) {
    if (!(result instanceof TunnelError)) break;
    result = await tryTunnel(options.proxy, host, port);
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
): Promise<Reached | TunnelError> {
  try {
    const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
    return { socket: await proxy.openTunnel(authority), address: host };
  } catch (error) {
    if (error instanceof TunnelError && error.result === 'unreachable') return error;
    throw error;
  }
}
