import { followTlsFiles } from '@posthorn/platform/service/secure-context.ts';
import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as requestHttp,
} from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import type { DispatcherConfig } from '../../config.ts';
import { serverNameOf } from './resolve-host.ts';
import { passHeadsOf } from './response-heads.ts';

/**
 * Shares of DELIVERY_TIMEOUT_MS. Together they are less than the whole, so that a proxy that hangs is
 * recognized before the attempt itself times out, which would be charged to the endpoint. An attempt of a webhook with a
 * shorter timeout may end first (docs/decisions/0005-one-deadline-sweep.md).
 */
const CONNECT_SHARE = 0.2;
const ANSWER_SHARE = 0.5;
const PROBE_SHARE = 0.1;

/** Returns the proxy of the settings; null when there is none. Throws StartupError when its CA cannot be read. */
export function createEgressProxy(
  config: Pick<
    DispatcherConfig,
    'EGRESS_PROXY_URL' | 'EGRESS_PROXY_CA_FILE' | 'EGRESS_PROXY_TARGET' | 'DELIVERY_TIMEOUT_MS'
  >,
  onResult: (result: TunnelResult) => void,
): EgressProxy | null {
  const {
    EGRESS_PROXY_URL: url,
    EGRESS_PROXY_CA_FILE: caFile,
    DELIVERY_TIMEOUT_MS: wholeMs,
  } = config;
  if (!url) return null;
  return createProxy({
    url,
    tls: caFile ? followTlsFiles('the egress proxy', { ca: caFile }) : null,
    target: config.EGRESS_PROXY_TARGET,
    connectTimeoutMs: Math.ceil(wholeMs * CONNECT_SHARE),
    answerTimeoutMs: Math.ceil(wholeMs * ANSWER_SHARE),
    probeTimeoutMs: Math.ceil(wholeMs * PROBE_SHARE),
    onResult,
  });
}

/** The proxy that all deliveries go through. */
export interface EgressProxy {
  /** The target that the proxy gets: an address that we have checked, or the host name. */
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

export function createProxy(options: ProxyOptions): EgressProxy {
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

/** Where the egress proxy is, and how long a connection to it may take. */
interface ProxyAccess {
  /** http or https, with user and password if it asks for them. */
  url: URL;
  /** Of an https proxy; null for the CAs that Node trusts. */
  tls: SecureContext | null;
  /** For the connection to the proxy itself, its TLS handshake included. */
  connectTimeoutMs: number;
}

interface Question {
  method: 'CONNECT' | 'OPTIONS';
  path: string;
  host: string;
  /** From the connection to the answer. */
  answerTimeoutMs: number;
}

type Answer =
  /** `head`: what arrived behind the answer. */
  | { kind: 'answered'; message: IncomingMessage; socket: Socket; head: Buffer }
  | { kind: 'not_connected' }
  | { kind: 'silent' }
  /** `code`: of Node or OpenSSL. */
  | { kind: 'failed'; code: string };

const MAX_HEADER_BYTES = 16_384;

/** Asks the proxy itself, on a connection of its own. Resolves also when the proxy fails; never rejects. */
function askProxy(access: ProxyAccess, question: Question): Promise<Answer> {
  return new Promise((resolve) => {
    const request = startRequest(access, question);
    let isConnected = false;
    request.once('socket', (socket: Socket) => {
      // Node takes a 1xx for the answer to CONNECT.
      passHeadsOf(socket);
      socket.once(isTls(access) ? 'secureConnect' : 'connect', () => {
        isConnected = true;
        socket.setTimeout(question.answerTimeoutMs);
      });
    });
    request.once('connect', (message: IncomingMessage, socket: Socket, head: Buffer) => {
      socket.setTimeout(0);
      resolve({ kind: 'answered', message, socket, head });
    });
    request.once('response', (message) => {
      resolve({ kind: 'answered', message, socket: message.socket, head: Buffer.alloc(0) });
    });
    request.once('timeout', () => {
      resolve({ kind: isConnected ? 'silent' : 'not_connected' });
      request.destroy();
    });
    request.on('error', ({ code = 'UNKNOWN' }: NodeJS.ErrnoException) => {
      resolve({ kind: 'failed', code });
    });
    request.end();
  });
}

const isTls = ({ url }: ProxyAccess): boolean => url.protocol === 'https:';

function startRequest(access: ProxyAccess, { method, path, host }: Question): ClientRequest {
  const { url, tls, connectTimeoutMs } = access;
  const proxyHost = url.hostname.replace(/^\[|\]$/g, '');
  const options = {
    host: proxyHost,
    port: Number(url.port) || (isTls(access) ? 443 : 80),
    method,
    path,
    headers: headersOf(url, host),
    agent: false,
    timeout: connectTimeoutMs,
    maxHeaderSize: MAX_HEADER_BYTES,
  };
  if (!isTls(access)) return requestHttp(options);
  // Node would take the name of the endpoint from the Host header.
  const servername = serverNameOf(proxyHost);
  const secured = { ...options, servername, rejectUnauthorized: true };
  return requestHttps({ ...secured, ...(tls && { secureContext: tls }) });
}

function headersOf({ username, password }: URL, host: string): OutgoingHttpHeaders {
  if (!username) return { host };
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { host, 'proxy-authorization': `Basic ${Buffer.from(login).toString('base64')}` };
}

/** The result of a CONNECT request. The values are labels of `posthorn_proxy_tunnels_total`. */
export const TUNNEL_RESULTS = [
  'opened',
  // The proxy could not connect to the endpoint.
  'unreachable',
  // The endpoint did not answer the proxy in time.
  'timeout',
  // A rule of the proxy refuses the endpoint.
  'refused',
  // The proxy itself failed. This is never charged to the endpoint.
  'fault',
] as const;

export type TunnelResult = (typeof TUNNEL_RESULTS)[number];

/** Smokescreen refuses an endpoint with 407 and this header; a 407 alone says that our password is wrong. */
const SMOKESCREEN_REFUSAL = 'x-smokescreen-error';

/** The types of errors of Proxy-Status that are the proxy's own (RFC 9209, section 2.3). */
const OWN_ERRORS = new Set([
  'connection_limit_reached',
  'proxy_internal_error',
  'proxy_internal_response',
  'proxy_configuration_error',
  'proxy_loop_detected',
]);
/** The last proxy of several is the last in the list, and the nearest to us. */
const ERROR_TYPE = /;\s*error=([\w-]+)/g;

/** True when the proxy says that it failed itself: in Proxy-Status, or, as Envoy does, that it is overloaded. */
function saysItFailed(headers: IncomingHttpHeaders): boolean {
  const types = String(headers['proxy-status'] ?? '').matchAll(ERROR_TYPE);
  const last = [...types].at(-1)?.[1];
  return (
    headers['x-envoy-overloaded'] !== undefined || (last !== undefined && OWN_ERRORS.has(last))
  );
}

/**
 * Returns what the answer of a proxy to CONNECT means (RFC 9110, section 9.3.6). There is no standard for
 * failures, see docs/decisions/0028-strict-endpoints.md for what common proxies answer.
 */
export function judgeAnswer(statusCode: number, headers: IncomingHttpHeaders): TunnelResult {
  if (statusCode >= 200 && statusCode <= 299) return 'opened';
  if (saysItFailed(headers)) return 'fault';
  if (statusCode === 504) return 'timeout';
  if (statusCode >= 500) return 'unreachable';
  if (statusCode === 403) return 'refused';
  if (statusCode === 407 && headers[SMOKESCREEN_REFUSAL] !== undefined) return 'refused';
  return 'fault';
}

/** The `code` of an attempt that failed by a fault of our proxy, before anything was sent to the endpoint. */
export const PROXY_FAULT = 'PROXY_FAULT';

const CODES = {
  fault: PROXY_FAULT,
  refused: 'EGRESS_BLOCKED',
  timeout: 'ATTEMPT_TIMEOUT',
  unreachable: 'ENDPOINT_UNREACHABLE',
} as const;

/** No tunnel was opened. The message contains neither the address nor the password of the proxy. */
export class TunnelError extends Error {
  readonly result: Exclude<TunnelResult, 'opened'>;
  readonly code: string;
  constructor(result: Exclude<TunnelResult, 'opened'>, message: string) {
    super(message);
    this.result = result;
    this.code = CODES[result];
  }
}
