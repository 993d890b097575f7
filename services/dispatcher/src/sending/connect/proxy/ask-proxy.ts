import {
  request as requestHttp,
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { serverNameOf } from '../server-name.ts';
import { passHeadsOf } from '../response-heads.ts';

/** Where the egress proxy is, and how long a connection to it may take. */
export interface ProxyAccess {
  /** http or https, with user and password if it asks for them. */
  url: URL;
  /** Of an https proxy; null for the CAs that Node trusts. */
  tls: SecureContext | null;
  /** For the connection to the proxy itself, its TLS handshake included. */
  connectTimeoutMs: number;
}

export interface Question {
  method: 'CONNECT' | 'OPTIONS';
  path: string;
  host: string;
  /** From the connection to the answer. */
  answerTimeoutMs: number;
}

export type Answer =
  /** `head`: what arrived behind the answer. */
  | { kind: 'answered'; message: IncomingMessage; socket: Socket; head: Buffer }
  | { kind: 'not_connected' }
  | { kind: 'silent' }
  /** `code`: of Node or OpenSSL. */
  | { kind: 'failed'; code: string };

const MAX_HEADER_BYTES = 16_384;

/** Asks the proxy itself, on a connection of its own. Resolves also when the proxy fails; never rejects. */
export function askProxy(access: ProxyAccess, question: Question): Promise<Answer> {
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
