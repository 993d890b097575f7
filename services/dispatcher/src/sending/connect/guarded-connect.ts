import type { LookupFunction, Socket } from 'node:net';
import {
  refusalOfAddress,
  refusalOfUrl,
  type EgressPolicy,
  type EgressRefusal,
} from '@posthorn/domain/egress/egress-rules.ts';
import { buildConnector } from 'undici';
import { boundReads } from '../../load/bounded-reads.ts';
import { LookupFailedError, type HostResolver, type Resolve } from './resolve-host.ts';

/** The destination is not public; the message never tells the address it resolved to. */
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
  /** For the look-up, the connection and the TLS handshake together. */
  connectTimeoutMs: number;
  hosts: HostResolver;
  onRefused: (reason: EgressRefusal) => void;
  onOpened: (socket: Socket) => void;
}

/** Node gives up an address after 250 ms for the next one; a handshake with a far, busy host takes longer. */
const NEXT_ADDRESS_AFTER_MS = 1_000;

/**
 * Connects only to public addresses. Three checks, because each is passed by on some way: the
 * address as written, scheme and port included (`lookup` is not called for literals), every answer
 * of the look-up (one refused answer refuses the name), and the far end of the open socket.
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
      const problem = error ?? problemOfFarEnd(socket, policy);
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

/** HTTP/1.1 alone, said here too: undici's own switch does not reach a connector that it is given. */
function openConnector({ policy, connectTimeoutMs, hosts }: GuardOptions) {
  return buildConnector({
    timeout: connectTimeoutMs,
    allowH2: false,
    // No variable of the environment turns the check of certificates off.
    rejectUnauthorized: true,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
    lookup: vettedLookup(policy, hosts.resolve),
  });
}

function refusalOfTarget(
  { protocol, host, hostname }: buildConnector.Options,
  policy: EgressPolicy,
): EgressRefusal | null {
  const url = URL.parse(`${protocol}//${host ?? hostname}`);
  return url ? refusalOfUrl(url, policy) : 'host';
}

/** A socket without a far end was reset while it was being opened. */
function problemOfFarEnd(socket: Socket | null, policy: EgressPolicy): Error | null {
  if (socket?.remoteAddress === undefined) {
    return Object.assign(new Error('reset as it was opened'), { code: 'ECONNRESET' });
  }
  const refusal = refusalOfAddress(socket.remoteAddress, policy);
  return refusal && new EgressBlockedError(refusal);
}

/**
 * The socket connects to the vetted answer itself, so a second answer cannot slip in (rebinding).
 * A remembered answer is judged at every use.
 */
function vettedLookup(policy: EgressPolicy, resolve: Resolve): LookupFunction {
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
