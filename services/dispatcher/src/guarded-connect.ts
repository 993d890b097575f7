import { lookup as systemLookup } from 'node:dns/promises';
import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { refusalOfAddress, refusalOfUrl, type EgressPolicy } from '@posthorn/domain/egress.ts';
import { buildConnector } from 'undici';

/** Every address of a host name. */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>;

/** The destination is not public; the message never tells the address it resolved to. */
export class EgressBlockedError extends Error {
  readonly code = 'EGRESS_BLOCKED';
  constructor() {
    super('blocked address');
  }
}

export interface GuardOptions {
  policy: EgressPolicy;
  connectTimeoutMs: number;
  resolve?: Resolve;
}

const resolveBySystem: Resolve = (hostname) => systemLookup(hostname, { all: true });

/**
 * Connects only to public addresses. Three checks, because each is passed by on some way: the
 * address as written, scheme and port included (`lookup` is not called for literals), every answer of the look-up (one refused answer
 * refuses the name), and the far end of the open socket.
 */
export function createGuardedConnect({
  policy,
  connectTimeoutMs,
  resolve = resolveBySystem,
}: GuardOptions): buildConnector.connector {
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    autoSelectFamily: true,
    lookup: vettedLookup(policy, resolve),
  });

  return (options, callback) => {
    const url = URL.parse(`${options.protocol}//${options.host ?? options.hostname}`);
    if (!url || refusalOfUrl(url, policy)) {
      callback(new EgressBlockedError(), null);
      return;
    }
    connect(options, (...[error, socket]) => {
      if (error) callback(error, null);
      else if (refusalOfAddress(socket.remoteAddress ?? '', policy)) {
        socket.destroy();
        callback(new EgressBlockedError(), null);
      } else callback(null, socket);
    });
  };
}

/** The socket connects to the vetted answer itself, so a second answer cannot slip in (rebinding). */
function vettedLookup(policy: EgressPolicy, resolve: Resolve): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (addresses) => {
        const first = addresses[0];
        const isRefused = addresses.some(({ address }) => refusalOfAddress(address, policy));
        if (!first || isRefused) callback(new EgressBlockedError(), []);
        else if (options.all) callback(null, addresses);
        else callback(null, first.address, first.family);
      },
      (error: unknown) => {
        callback(error as NodeJS.ErrnoException, []);
      },
    );
  };
}
