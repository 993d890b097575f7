import { createReaddress } from '../../test/support/process/kafka-proxy.ts';
import type { Addresses } from '../../tools/local-stack/settings.ts';
import { type Address, startTcpProxy, type TcpProxy } from '../proxy/tcp-proxy.ts';
import type { Member } from './fleet.ts';
import type { Layout } from './layout.ts';

/** The proxies of a stack, as its layout wants them. */
export interface Proxies {
  kafka: TcpProxy | null;
  redis: TcpProxy | null;
  /** The settings with which a member connects through them. */
  envOf: (member: Member) => Record<string, string>;
  close: () => Promise<void>;
}

export async function openProxies(
  { kafkaProxy, hasRedisProxy }: Layout,
  { kafkaBrokers, redisUrl }: Addresses,
): Promise<Proxies> {
  const kafka = kafkaProxy === 'none' ? null : await startKafkaProxy(addressOf(kafkaBrokers));
  const { host } = new URL(redisUrl);
  const redis = hasRedisProxy ? await startTcpProxy({ to: addressOf(host) }) : null;
  return {
    kafka,
    redis,
    envOf: (member) => ({
      ...(kafka && isBehind(member, kafkaProxy) ? brokersEnv(kafka) : {}),
      ...(redis ? { REDIS_URL: `redis://127.0.0.1:${redis.port}` } : {}),
    }),
    async close() {
      await kafka?.close();
      await redis?.close();
    },
  };
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
