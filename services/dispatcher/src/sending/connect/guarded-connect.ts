import type { LookupFunction, Socket } from 'node:net';
import {
  refusalOfAddress,
  refusalOfUrl,
  type EgressPolicy,
  type EgressRefusal,
} from '@posthorn/domain/egress/egress-rules.ts';
import { buildConnector } from 'undici';
import { boundReads } from './bounded-reads.ts';
import { LookupFailedError, type HostResolver, type Resolve } from './resolve-host.ts';

/** Deliveries may not go to the destination. The message does not contain the address that it resolved to. */
export class EgressBlockedError extends Error {
  readonly code = 'EGRESS_BLOCKED';
  readonly reason: EgressRefusal;
  constructor(reason: EgressRefusal) {
    super('blocked address');
    this.reason = reason;
  }
}

export interface GuardOptions {
  policy: EgressPolicy;
  /** For the connection and the TLS handshake, the look-up of the host included. */
  connectTimeoutMs: number;
  hosts: HostResolver;
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
 * 3. The remote address of the open socket.
 */
export function createGuardedConnect(options: GuardOptions): buildConnector.connector {
  const { policy, hosts } = options;
  const connect = openConnector(options);

  return (target, callback) => {
    const fail = (error: Error): void => {
      if (error instanceof EgressBlockedError) options.onRefused(error.reason);
      else if (!(error instanceof LookupFailedError)) hosts.forget(target.hostname);
      callback(error, null);
    };
    const refusal = refusalOfTarget(target, policy);
    if (refusal) {
      fail(new EgressBlockedError(refusal));
      return;
    }
    connect(target, (...[error, socket]) => {
      const problem = error ?? problemOfRemote(socket, policy);
      if (problem) {
        socket?.destroy();
        fail(problem);
      } else if (socket) {
        boundReads(socket);
        options.onOpened(socket);
        callback(null, socket);
      }
    });
  };
}

/** `allowH2` is set here too: undici does not pass its own option to a connector that it is given. */
function openConnector({ policy, connectTimeoutMs, hosts }: GuardOptions) {
  return buildConnector({
    timeout: connectTimeoutMs,
    allowH2: false,
    // So that NODE_TLS_REJECT_UNAUTHORIZED cannot turn the check of certificates off.
    rejectUnauthorized: true,
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
 * another one (DNS rebinding). A cached address is checked each time it is used.
 */
function checkedLookup(policy: EgressPolicy, resolve: Resolve): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (addresses) => {
        const [first] = addresses;
        const isRefused = addresses.some(({ address }) => refusalOfAddress(address, policy));
        if (!first || isRefused) callback(new EgressBlockedError('address'), []);
        else if (options.all) callback(null, addresses);
        else callback(null, first.address, first.family);
      },
      (error: unknown) => {
        callback(error as NodeJS.ErrnoException, []);
      },
    );
  };
}
