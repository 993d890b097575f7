import type { Socket } from 'node:net';
import { askProxy, type ProxyAccess } from './ask-proxy.ts';
import { judgeAnswer, type TunnelResult } from './judge-answer.ts';
import { TunnelError } from './tunnel-error.ts';

/** The proxy that all deliveries go through. */
export interface EgressProxy {
  /** What of the endpoint the proxy gets: an address that we have checked, or the host name. */
  target: 'address' | 'name';
  /** Resolves with a connection to `authority` (`host:port`). Rejects with TunnelError. */
  openTunnel: (authority: string) => Promise<Socket>;
}

export interface ProxyOptions extends ProxyAccess {
  target: EgressProxy['target'];
  /** For the answer to CONNECT: in this time the proxy connects to the endpoint. */
  answerTimeoutMs: number;
  /** For the answer to the question whether the proxy still works. */
  probeTimeoutMs: number;
  onResult: (result: TunnelResult) => void;
}

type IsAlive = () => Promise<boolean>;

export function openProxy(options: ProxyOptions): EgressProxy {
  let probe: Promise<boolean> | null = null;
  /** One probe serves all that ask at the same time. */
  const isAlive: IsAlive = () => {
    probe ??= probeProxy(options).finally(() => (probe = null));
    return probe;
  };
  return {
    target: options.target,
    async openTunnel(authority) {
      const tunnel = await connectTo(options, authority, isAlive);
      options.onResult(tunnel instanceof TunnelError ? tunnel.result : 'opened');
      if (tunnel instanceof TunnelError) throw tunnel;
      return tunnel;
    },
  };
}

async function connectTo(
  options: ProxyOptions,
  authority: string,
  isAlive: IsAlive,
): Promise<Socket | TunnelError> {
  const { answerTimeoutMs } = options;
  const question = { path: authority, host: authority, answerTimeoutMs };
  const answer = await askProxy(options, { method: 'CONNECT', ...question });
  switch (answer.kind) {
    case 'answered': {
      const { message, socket, head } = answer;
      // Until the caller listens; without a listener an error would end the process.
      socket.on('error', () => undefined);
      const status = message.statusCode ?? 0;
      const result = judgeAnswer(status, message.headers);
      if (result === 'opened') return prepare(socket, head);
      socket.destroy();
      return new TunnelError(result, `the proxy answered ${status}`);
    }
    case 'not_connected':
      return new TunnelError('fault', 'the proxy was not reached in time');
    case 'failed':
      return new TunnelError('fault', `the proxy failed: ${answer.code}`);
    // It may wait for a silent endpoint, or hang.
    case 'silent':
      return (await isAlive())
        ? new TunnelError('timeout', 'the endpoint did not answer the proxy in time')
        : new TunnelError('fault', 'the proxy does not answer');
  }
}

const KEEP_ALIVE_AFTER_MS = 60_000;

function prepare(socket: Socket, head: Buffer): Socket {
  if (head.length > 0) socket.unshift(head);
  return socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_AFTER_MS);
}

/** Any answer will do, also one that says that the method is not allowed. */
async function probeProxy(options: ProxyOptions): Promise<boolean> {
  const { connectTimeoutMs, probeTimeoutMs, url } = options;
  const answer = await askProxy(
    { ...options, connectTimeoutMs: Math.min(connectTimeoutMs, probeTimeoutMs) },
    { method: 'OPTIONS', path: '*', host: url.host, answerTimeoutMs: probeTimeoutMs },
  );
  if (answer.kind !== 'answered') return false;
  answer.socket.destroy();
  return true;
}
