import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface PrefixProxy {
  /** With the prefix. */
  url: string;
  close: () => Promise<void>;
}

/** Starts a proxy that has a gateway below a path, as an ingress may: it takes the prefix off and passes the rest on. */
export async function startPrefixProxy(gatewayUrl: string, prefix: string): Promise<PrefixProxy> {
  const server = createServer((request, response) => {
    const { method, headers, url = '/' } = request;
    if (!url.startsWith(`${prefix}/`)) {
      response.writeHead(404).end();
      return;
    }
    const upstream = send(gatewayUrl + url.slice(prefix.length), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    upstream.on('error', () => response.destroy());
    response.on('close', () => upstream.destroy());
    request.pipe(upstream);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}${prefix}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
