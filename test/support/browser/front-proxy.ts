import { createServer, request as send, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { selfSigned } from '../receivers/self-signed.ts';

export interface FrontProxy {
  /** With the prefix. */
  url: string;
  close: () => Promise<void>;
}

export interface FrontProxyOptions {
  /** The path below which the gateway is; '' for none. */
  prefix?: string;
  /** Takes https, and says so to the gateway, which must trust one proxy. */
  isSecure?: boolean;
}

/** Starts a proxy in front of a gateway, as an ingress is: it takes the prefix off, ends TLS, and passes the rest on. */
export async function startFrontProxy(
  gatewayUrl: string,
  { prefix = '', isSecure = false }: FrontProxyOptions,
): Promise<FrontProxy> {
  const scheme = isSecure ? 'https' : 'http';
  const pass = passTo(gatewayUrl, prefix, scheme);
  const server = isSecure ? createSecureServer(selfSigned('127.0.0.1'), pass) : createServer(pass);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${scheme}://127.0.0.1:${port}${prefix}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function passTo(gatewayUrl: string, prefix: string, scheme: string): RequestListener {
  return (request, response) => {
    const { method, url = '/' } = request;
    if (!url.startsWith(`${prefix}/`)) {
      response.writeHead(404).end();
      return;
    }
    const headers = { ...request.headers, 'x-forwarded-proto': scheme };
    const upstream = send(gatewayUrl + url.slice(prefix.length), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    upstream.on('error', () => response.destroy());
    response.on('close', () => upstream.destroy());
    request.pipe(upstream);
  };
}
