import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

/** A connection to a store that can be frozen or slowed for one process alone. */
export interface StoreProxy {
  /** The URL of the store through the proxy. */
  url: string;
  /** How many connections were made to it. */
  connections: () => number;
  /**
   * Lets nothing pass from now on, in either direction, and ends no connection: as a store whose process
   * is stopped, or a network that drops every packet. New connections are accepted.
   */
  freeze: () => void;
  /** Lets pass what has waited, also that of clients that have given up meanwhile, and all that follows. */
  thaw: () => void;
  /** Delays what clients send from now on by so much. */
  delay: (delayMs: number) => void;
  /** Ends all connections; new ones are accepted. */
  cut: () => void;
  close: () => Promise<void>;
}

interface Passing {
  isFrozen: boolean;
  delayMs: number;
}

/** Starts a proxy to the store of this URL. A MongoDB client learns no other address than the proxy's. */
export async function startStoreProxy(storeUrl: string): Promise<StoreProxy> {
  const to = new URL(storeUrl);
  const passing: Passing = { isFrozen: false, delayMs: 0 };
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer({ allowHalfOpen: true }, (client) => {
    connections += 1;
    const store = connect({ host: to.hostname, port: Number(to.port), allowHalfOpen: true });
    for (const socket of [client, store]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => sockets.delete(socket));
    }
    pass(client, store, passing, () => passing.delayMs);
    pass(store, client, passing, () => 0);
  });
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: urlThrough(to, (server.address() as AddressInfo).port),
    connections: () => connections,
    freeze() {
      passing.isFrozen = true;
      for (const socket of sockets) socket.pause();
    },
    thaw() {
      passing.isFrozen = false;
      for (const socket of sockets) socket.resume();
    },
    delay(delayMs) {
      passing.delayMs = delayMs;
    },
    cut,
    close() {
      cut();
      return new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
      });
    },
  };
}

/** Passes on what one side sends, in order, and its end. */
function pass(from: Socket, to: Socket, passing: Passing, delayMs: () => number): void {
  let passed = Promise.resolve();
  const later = (send: () => void): void => {
    // A proxy that was closed must not keep its process.
    const ready = wait(delayMs(), undefined, { ref: false });
    passed = passed.then(() => ready).then(send);
  };
  from.on('data', (chunk: Buffer) => {
    later(() => to.write(chunk));
  });
  from.on('end', () => {
    later(() => to.end());
  });
  if (passing.isFrozen) from.pause();
}

function urlThrough(to: URL, port: number): string {
  const url = new URL(to.href);
  // The name stays: a certificate may be for it.
  url.port = String(port);
  if (url.protocol === 'mongodb:') {
    url.searchParams.delete('replicaSet');
    url.searchParams.set('directConnection', 'true');
  }
  return url.href;
}
