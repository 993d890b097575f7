import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

/** A connection to a store, or to another server, that can be frozen or slowed for one process alone. */
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
  /** Freezes when a client sends a command with these bytes, given as Latin-1: the first thing that does not pass. */
  freezeAt: (bytes: string) => void;
  /** Delays what clients send from now on by so much. */
  delay: (delayMs: number) => void;
  /** Ends all connections; new ones are accepted. */
  cut: () => void;
  close: () => Promise<void>;
}

interface Passing {
  isFrozen: boolean;
  delayMs: number;
  freeze: () => void;
  /** Null for none. */
  freezesAt: Buffer | null;
}

/** Starts a proxy to the store of this URL. A MongoDB client learns no other address than the proxy's. */
export async function startStoreProxy(storeUrl: string): Promise<StoreProxy> {
  const to = new URL(storeUrl);
  const sockets = new Set<Socket>();
  const passing: Passing = {
    isFrozen: false,
    delayMs: 0,
    freezesAt: null,
    freeze() {
      passing.isFrozen = true;
      for (const socket of sockets) socket.pause();
    },
  };
  let connections = 0;
  const server = createServer({ allowHalfOpen: true }, (client) => {
    connections += 1;
    const store = connect({ host: to.hostname, port: Number(to.port), allowHalfOpen: true });
    for (const socket of [client, store]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => sockets.delete(socket));
    }
    passOn(client, store, passing);
    passBack(store, client, passing);
  });
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: urlThrough(to, (server.address() as AddressInfo).port),
    connections: () => connections,
    freeze: passing.freeze,
    thaw() {
      passing.isFrozen = false;
      for (const socket of sockets) socket.resume();
    },
    freezeAt(bytes) {
      passing.freezesAt = Buffer.from(bytes, 'latin1');
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

/** Passes on what a client sends, in order, and its end. A small command comes in one piece. */
function passOn(client: Socket, store: Socket, passing: Passing): void {
  let passed = Promise.resolve();
  const later = (send: () => void): void => {
    // A proxy that was closed must not keep its process.
    const ready = wait(passing.delayMs, undefined, { ref: false });
    passed = passed.then(() => ready).then(send);
  };
  client.on('data', (chunk: Buffer) => {
    if (passing.freezesAt && chunk.includes(passing.freezesAt)) {
      passing.freezesAt = null;
      passing.freeze();
      client.unshift(chunk);
    } else later(() => store.write(chunk));
  });
  client.on('end', () => {
    later(() => store.end());
  });
  if (passing.isFrozen) client.pause();
}

/** Passes back what the store answers, and its end. */
function passBack(store: Socket, client: Socket, { isFrozen }: Passing): void {
  store.on('data', (chunk) => client.write(chunk));
  store.on('end', () => client.end());
  if (isFrozen) store.pause();
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
