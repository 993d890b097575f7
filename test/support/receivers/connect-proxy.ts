import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';
import type { SelfSigned } from './self-signed.ts';

/** What the proxy does with CONNECT. */
export type ProxyConduct =
  /** Connects to this port of loopback, whatever it is asked for. `before`: sent before the answer. */
  | { kind: 'tunnel'; port: number; before?: string }
  | { kind: 'answer'; status: number; headers?: Record<string, string> }
  | { kind: 'reset' }
  /** Answers nothing more to anybody. */
  | { kind: 'hang' }
  /** Answers other requests, as a proxy does that waits for a silent endpoint. */
  | { kind: 'wait' };

/** An HTTP CONNECT proxy (RFC 9110, section 9.3.6) on loopback. */
export interface ConnectProxy {
  url: URL;
  /** What was asked for by CONNECT: `host:port`. */
  asked: string[];
  /** The Proxy-Authorization headers that came with it. */
  logins: (string | undefined)[];
  behave: (conduct: ProxyConduct) => void;
  close: () => Promise<void>;
}

export async function startConnectProxy(identity?: SelfSigned): Promise<ConnectProxy> {
  let conduct: ProxyConduct = { kind: 'answer', status: 502 };
  const [asked, logins]: [string[], (string | undefined)[]] = [[], []];
  const sockets = new Set<Socket>();
  const server = identity ? createTlsServer(identity) : createServer();
  server.on(identity ? 'secureConnection' : 'connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => undefined));
  });
  server.on('request', (_request, response) => {
    if (conduct.kind !== 'hang') response.writeHead(405).end();
  });
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    asked.push(request.url ?? '');
    logins.push(request.headers['proxy-authorization']);
    obey(conduct, socket, sockets);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: new URL(`${identity ? 'https' : 'http'}://127.0.0.1:${port}`),
    asked,
    logins,
    behave(next) {
      conduct = next;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function obey(conduct: ProxyConduct, socket: Socket, sockets: Set<Socket>): void {
  switch (conduct.kind) {
    case 'tunnel': {
      const upstream = connect(conduct.port, '127.0.0.1');
      sockets.add(upstream);
      upstream.on('error', () => socket.destroy());
      upstream.once('connect', () => {
        socket.write(`${conduct.before ?? ''}HTTP/1.1 200 Connection established\r\n\r\n`);
        socket.pipe(upstream).pipe(socket);
      });
      return;
    }
    case 'answer': {
      const headers = Object.entries({ 'content-length': '0', ...conduct.headers });
      const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
      socket.end(`HTTP/1.1 ${conduct.status} No\r\n${lines}\r\n`);
      return;
    }
    case 'reset':
      socket.resetAndDestroy();
      return;
    case 'hang':
    case 'wait':
      return;
  }
}
