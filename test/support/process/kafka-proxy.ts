import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A way to a broker that can be blocked, for one process and nobody else. */
export interface KafkaProxy {
  /** For KAFKA_BROKERS. */
  broker: string;
  /** From now on nothing reaches the broker, and no connection ends. */
  block: () => void;
  /** What waits at a block is dropped with its connection; new connections get through. */
  unblock: () => void;
  close: () => Promise<void>;
}

interface Way {
  server: Server;
  to: { host: string; port: number };
  /** How much later than it came a request is passed on. */
  delayMs: number;
  isBlocked: boolean;
  clients: Set<Socket>;
}

/** `broker` as host:port, spelled as the broker itself gives its address to clients. */
export async function startKafkaProxy(broker: string, delayMs = 0): Promise<KafkaProxy> {
  const [host = '', port = ''] = broker.split(':');
  const server = createServer();
  const way: Way = {
    server,
    delayMs,
    isBlocked: false,
    clients: new Set(),
    to: { host, port: Number(port) },
  };
  server.on('connection', (client) => {
    pass(way, client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    broker: `${host}:${portOf(way)}`,
    block() {
      way.isBlocked = true;
      for (const client of way.clients) client.pause();
    },
    unblock() {
      way.isBlocked = false;
      endAll(way);
    },
    close() {
      endAll(way);
      return new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
      });
    },
  };
}

function portOf({ server }: Way): number {
  return (server.address() as AddressInfo).port;
}

function endAll({ clients }: Way): void {
  for (const client of clients) client.destroy();
}

function pass(way: Way, client: Socket): void {
  const { clients, delayMs, to } = way;
  const broker = connect(to);
  clients.add(client);
  if (way.isBlocked) client.pause();
  client.on('data', (chunk) => {
    setTimeout(() => {
      if (!broker.destroyed && !way.isBlocked) broker.write(chunk);
    }, delayMs);
  });
  const readdress = createReaddress(to, portOf(way));
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

/**
 * A broker tells clients its own address (host, then the port in four bytes), and they would go
 * there. Answers are length-prefixed and may come in pieces; whole ones are passed on.
 */
function createReaddress(from: Way['to'], port: number): (chunk: Buffer) => Buffer {
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
