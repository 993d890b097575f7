import { request as requestHttp, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';

interface RequestToSend {
  method: string;
  headers: Readonly<Record<string, string>>;
  body?: Buffer | undefined;
  /** Ends the request, and the response too. */
  signal: AbortSignal;
  /** How the host is looked up; as the system does unless given. */
  lookup?: LookupFunction;
}

/** More informational responses (1xx) than this have no response behind them. */
const MAX_INFORMATIONAL = 16;

/**
 * Sends a request on a connection of its own, and resolves with its response once the headers are there. Redirects are
 * not followed. `fetch` fails when an informational response comes that was not asked for (RFC 9110, 15.2), and sends
 * the dot at the end of a host in the TLS handshake (RFC 6066, 3).
 */
export function openResponse(
  url: string,
  { method, headers, body, signal, lookup }: RequestToSend,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const target = new URL(url);
    const options: RequestOptions & { servername?: string } = {
      method,
      headers: { accept: '*/*', 'accept-encoding': 'identity', ...headers },
      agent: false,
      signal,
      ...(lookup && { lookup }),
    };
    const request =
      target.protocol === 'https:'
        ? requestHttps(target, { ...options, servername: serverNameOf(target) })
        : requestHttp(target, options);
    let informational = 0;
    request.on('information', () => {
      informational += 1;
      if (informational > MAX_INFORMATIONAL) {
        request.destroy(new Error('too many informational responses'));
      }
    });
    request.once('response', (response) => {
      // Node ends the connection by itself only when a change of protocol names the other protocol.
      if (response.statusCode === 101) request.destroy();
      else resolve(response);
    });
    request.once('close', () => {
      reject(new Error('the connection ended without a response'));
    });
    request.on('error', reject);
    request.end(body);
  });
}

function serverNameOf({ hostname }: URL): string {
  const name = hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '');
  return isIP(name) ? '' : name;
}
