import type { LookupFunction, Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import {
  refusalOfAddress,
  refusalOfUrl,
  type EgressPolicy,
  type EgressRefusal,
} from '@posthorn/domain/egress/egress-rules.ts';
import { buildConnector } from 'undici';
import { checkedAddresses, EgressBlockedError } from './checked-addresses.ts';
import { connectThroughProxy } from './connect-through-proxy.ts';
import { prepareSocket } from './prepare-socket.ts';
import type { EgressProxy } from './proxy/open-proxy.ts';
import { TunnelError } from './proxy/tunnel-error.ts';
import { serverNameOf } from './server-name.ts';
import { LookupFailedError, type HostResolver, type Resolve } from './resolve-host.ts';

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
