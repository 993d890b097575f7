import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { SelfSigned } from './self-signed.ts';

/** An endpoint that answers as soon as a request begins, and closes with its body unread, which resets the connection. */
export interface EarlyEndpoint {
  port: number;
  close: () => Promise<void>;
}

interface EarlyEndpointOptions {
  answer: string;
  /** The endpoint is reached by https with it; null for http. */
  identity: SelfSigned | null;
  /** Requests on each connection that are read and answered with 200 before. */
  readFirst?: number;
  /** Answers CONNECT first, as the proxy in front of it does. */
  isTunnel?: boolean;
}

/** Starts it in a thread of its own: it answers while the sender writes. */
export async function startEarlyEndpoint(options: EarlyEndpointOptions): Promise<EarlyEndpoint> {
  const worker = new Worker(new URL(import.meta.url), { workerData: options });
  const [port] = (await once(worker, 'message')) as [number];
  return {
    port,
    async close() {
      await worker.terminate();
    },
  };
}

function serve({ answer, identity, readFirst = 0, isTunnel = false }: EarlyEndpointOptions): void {
  const onConnection = (socket: Socket): void => {
    let toRead = readFirst;
    socket
      .on('error', () => undefined)
      .on('data', (chunk: Buffer) => {
        if (!chunk.includes('POST /')) return;
        if (toRead > 0) {
          toRead -= 1;
          socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
          return;
        }
        socket.write(answer);
        socket.destroy();
      });
  };
  const endpoint = identity ? createTlsServer(identity, onConnection) : createServer(onConnection);
  const proxy = createServer((socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      endpoint.emit('connection', socket);
    });
  });
  const server = isTunnel ? proxy : endpoint;
  server.listen(0, '127.0.0.1', () => {
    parentPort?.postMessage((server.address() as AddressInfo).port);
  });
}

if (!isMainThread && parentPort) serve(workerData as EarlyEndpointOptions);
