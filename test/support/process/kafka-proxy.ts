import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A connection to a broker that can be blocked for one process alone. */
export interface KafkaProxy {
  /** For KAFKA_BROKERS. */
  broker: string;
  /** Lets nothing reach the broker from now on, and ends no connection. */
  block: () => void;
  /** Ends the blocked connections with what they hold; new connections reach the broker. */
  unblock: () => void;
  /** Ends the connection of the next request of this kind instead of passing it on. The numbers are those of Kafka. */
  refuseNext: (apiKey: number) => void;
  close: () => Promise<void>;
}

interface ProxyState {
  server: Server;
  to: { host: string; port: number };
  isBlocked: boolean;
  /** The kind of request that is refused once; null when none is. */
  refused: number | null;
  clients: Set<Socket>;
}

/** Starts a proxy to `broker`, given as host:port exactly as the broker gives its address to clients. */
export async function startKafkaProxy(broker: string): Promise<KafkaProxy> {
  const [host = '', port = ''] = broker.split(':');
  const server = createServer();
  const state: ProxyState = {
    server,
    isBlocked: false,
    refused: null,
    clients: new Set(),
    to: { host, port: Number(port) },
  };
  server.on('connection', (client) => {
    forward(state, client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    broker: `${host}:${portOf(state)}`,
    block() {
      state.isBlocked = true;
      for (const client of state.clients) client.pause();
    },
    unblock() {
      state.isBlocked = false;
      endAll(state);
    },
    refuseNext(apiKey) {
      state.refused = apiKey;
    },
    close() {
      endAll(state);
      return new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
      });
    },
  };
}

function portOf({ server }: ProxyState): number {
  return (server.address() as AddressInfo).port;
}

function endAll({ clients }: ProxyState): void {
  for (const client of clients) client.destroy();
}

function forward(state: ProxyState, client: Socket): void {
  const { clients, to } = state;
  const broker = connect(to);
  clients.add(client);
  if (state.isBlocked) client.pause();
  client.on('data', (chunk: Buffer) => {
    if (isRefused(state, chunk)) {
      state.refused = null;
      client.destroy();
      return;
    }
    if (!broker.destroyed && !state.isBlocked) broker.write(chunk);
  });
  const readdress = createReaddress(to, portOf(state));
  broker.on('data', (chunk) => client.write(readdress(chunk)));
  for (const socket of [client, broker]) {
    // A process that was killed resets its connections; the close follows.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clients.delete(client);
      client.destroy();
      broker.destroy();
    });
  }
}

/** A request begins with its length in four bytes and its kind in two. Small ones come in one piece. */
function isRefused({ refused }: ProxyState, chunk: Buffer): boolean {
  return refused !== null && chunk.length >= 6 && chunk.readInt16BE(4) === refused;
}

/**
 * A broker gives clients its own address (host, then the port in four bytes), and they would connect
 * there. Responses are length-prefixed and may come in pieces; only whole ones are passed on.
 */
export function createReaddress(from: ProxyState['to'], port: number): (chunk: Buffer) => Buffer {
  const own = addressBytes(from.host, from.port);
  const proxied = addressBytes(from.host, port);
  let rest = Buffer.alloc(0);
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    let end = 0;
    while (rest.length >= end + 4 && rest.length >= end + 4 + rest.readInt32BE(end)) {
      end += 4 + rest.readInt32BE(end);
    }
    const whole = Buffer.from(rest.subarray(0, end));
    rest = rest.subarray(end);
    for (let at = whole.indexOf(own); at >= 0; at = whole.indexOf(own, at + 1)) {
      proxied.copy(whole, at);
    }
    return whole;
  };
}

function addressBytes(host: string, port: number): Buffer {
  const bytes = Buffer.alloc(host.length + 4);
  bytes.write(host);
  bytes.writeInt32BE(port, host.length);
  return bytes;
}
