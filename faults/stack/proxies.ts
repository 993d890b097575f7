import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createReaddress } from '../../test/support/process/kafka-proxy.ts';
import type { Addresses } from '../../tools/local-stack/settings.ts';
import type { Member, Layout } from './fleet.ts';

/** The proxies of a stack, as its layout wants them. */
export interface Proxies {
  kafka: TcpProxy | null;
  redis: TcpProxy | null;
  mongodb: TcpProxy | null;
  /** The settings with which a member connects through them. */
  envOf: (member: Member) => Record<string, string>;
  close: () => Promise<void>;
}

export async function openProxies(
  { kafkaProxy, hasRedisProxy, hasMongodbProxy }: Layout,
  { kafkaBrokers, redisUrl, mongodbUrl }: Addresses,
): Promise<Proxies> {
  const kafka = kafkaProxy === 'none' ? null : await startKafkaProxy(addressOf(kafkaBrokers));
  const proxyOf = (url: string): Promise<TcpProxy> =>
    startTcpProxy({ to: addressOf(new URL(url).host) });
  const redis = hasRedisProxy ? await proxyOf(redisUrl) : null;
  const mongodb = hasMongodbProxy ? await proxyOf(mongodbUrl) : null;
  return {
    kafka,
    redis,
    mongodb,
    envOf: (member) => ({
      ...(kafka && isBehind(member, kafkaProxy) ? brokersEnv(kafka) : {}),
      ...(redis ? { REDIS_URL: `redis://127.0.0.1:${redis.port}` } : {}),
      ...(mongodb ? { MONGODB_URL: throughProxy(mongodbUrl, mongodb) } : {}),
    }),
    async close() {
      await kafka?.close();
      await redis?.close();
      await mongodb?.close();
    },
  };
}

/** Direct: the replica set would tell its own address. */
function throughProxy(url: string, { port }: TcpProxy): string {
  return `mongodb://127.0.0.1:${port}${new URL(url).pathname}?directConnection=true`;
}

function brokersEnv({ port }: TcpProxy): Record<string, string> {
  return { KAFKA_BROKERS: `127.0.0.1:${port}` };
}

function isBehind(member: Member, who: Layout['kafkaProxy']): boolean {
  return who === 'all' || who === member;
}

/** A broker tells clients its own address, which the proxy replaces by its own. */
function startKafkaProxy(broker: Address): Promise<TcpProxy> {
  return startTcpProxy({ to: broker, rewriteOf: (port) => () => createReaddress(broker, port) });
}

function addressOf(hostAndPort: string): Address {
  const [host = '', port = ''] = hostAndPort.split(':');
  return { host, port: Number(port) };
}

interface Address {
  host: string;
  port: number;
}

/** A connection to a store that can be slowed, cut or reset for those who go through it. */
export interface TcpProxy {
  port: number;
  /** Delays each piece of a request by this many milliseconds from now on; 0 for not at all. */
  delayRequestsBy: (ms: number) => void;
  /** Forwards nothing from now on and closes no connection, so that both sides take it for open. */
  cut: () => void;
  /** From now on cuts a connection when a request with these bytes, given as Latin-1, comes on it. */
  cutAt: (bytes: string) => void;
  /** From now on replies to such requests in place of the store; null: the store replies again. */
  answerAt: (answering: Answering | null) => void;
  /** Resets the connections that were cut; new ones are forwarded again. */
  mend: () => void;
  /** Resets every connection. */
  resetAll: () => void;
  close: () => Promise<void>;
}

/** A request in one piece, and the whole reply to it. */
export interface Answering {
  /** In each of these requests, given as Latin-1. */
  bytes: string;
  reply: (request: Buffer) => Buffer;
}

/** Changes what comes back from the store, piece by piece; one for each connection. */
type Rewrite = (chunk: Buffer) => Buffer;

interface ProxyOptions {
  to: Address;
  /** Is given the port of the proxy. */
  rewriteOf?: (port: number) => () => Rewrite;
}

interface State {
  to: Address;
  delayMs: number;
  isCut: boolean;
  /** Null for none. */
  cutsAt: Buffer | null;
  answers: { at: Buffer; reply: Answering['reply'] } | null;
  sockets: Set<Socket>;
  rewrite: () => Rewrite;
}

export async function startTcpProxy({ to, rewriteOf }: ProxyOptions): Promise<TcpProxy> {
  const state: State = {
    to,
    delayMs: 0,
    isCut: false,
    cutsAt: null,
    answers: null,
    sockets: new Set(),
    rewrite: () => (chunk) => chunk,
  };
  const server = createServer((client) => {
    forward(state, client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  if (rewriteOf) state.rewrite = rewriteOf(port);
  return { port, ...controlsOf(state, server) };
}

function controlsOf(state: State, server: Server): Omit<TcpProxy, 'port'> {
  const resetAll = (): void => {
    for (const socket of state.sockets) socket.resetAndDestroy();
  };
  return {
    resetAll,
    delayRequestsBy(ms) {
      state.delayMs = ms;
    },
    cut() {
      state.isCut = true;
      for (const socket of state.sockets) socket.pause();
    },
    cutAt(bytes) {
      state.cutsAt = Buffer.from(bytes, 'latin1');
    },
    answerAt(answering) {
      state.answers = answering && {
        at: Buffer.from(answering.bytes, 'latin1'),
        reply: answering.reply,
      };
    },
    mend() {
      state.isCut = false;
      state.cutsAt = null;
      resetAll();
    },
    async close() {
      server.close();
      resetAll();
      await once(server, 'close');
    },
  };
}

function forward(state: State, client: Socket): void {
  const { sockets, to } = state;
  const store = connect(to);
  const rewrite = state.rewrite();
  client.on('data', (chunk) => {
    if (state.cutsAt && chunk.includes(state.cutsAt)) {
      client.pause();
      store.pause();
    } else if (state.answers && chunk.includes(state.answers.at)) {
      client.write(state.answers.reply(chunk));
    } else passOn(state, store, chunk);
  });
  store.on('data', (chunk) => {
    if (client.writable) client.write(rewrite(chunk));
  });
  for (const [socket, other] of [
    [client, store],
    [store, client],
  ] as const) {
    sockets.add(socket);
    socket.setNoDelay(true);
    if (state.isCut) socket.pause();
    // A process that was killed resets its connections; the close follows.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      other.destroy();
    });
  }
}

/** Timers of the same delay fire in order, so the pieces stay in order while the delay does not change. */
function passOn(state: State, store: Socket, chunk: Buffer): void {
  if (state.delayMs === 0) {
    if (store.writable) store.write(chunk);
    return;
  }
  setTimeout(() => {
    if (store.writable && !state.isCut) store.write(chunk);
  }, state.delayMs);
}
