import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** An endpoint that sends raw bytes, for responses that no HTTP server would send. */
export interface RawEndpoint {
  origin: string;
  /** Is called for each request. */
  talk: (socket: Socket) => void;
  /** Every connection that was made. */
  sockets: Socket[];
  /** Resolves when each of them is closed. */
  allClosed: () => Promise<void>;
  close: () => void;
}

export async function openRawEndpoint(): Promise<RawEndpoint> {
  const sockets: Socket[] = [];
  const closings: Promise<unknown>[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket.on('error', () => undefined));
    closings.push(new Promise((closed) => socket.once('close', closed)));
    socket.on('data', (chunk) => {
      if (chunk.includes('POST /')) endpoint.talk(socket);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint: RawEndpoint = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    talk: () => undefined,
    sockets,
    async allClosed() {
      await Promise.all(closings);
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
  return endpoint;
}

/** Writes for as long as the other side reads. */
export function writeForever(socket: Socket, piece = 'x'.repeat(16_384)): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on('drain', more);
  more();
}
