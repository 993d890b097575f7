import { createHash } from 'node:crypto';
import type { StartedTestContainer } from 'testcontainers';
import { isKafkaReady, serverProperties } from './kafka-native.ts';
import { initiateReplicaSet } from './mongodb-native.ts';
import { isRedisReady } from './redis-native.ts';
import type { BackingPorts } from '../settings.ts';
import { waitUntil } from '../waiting.ts';
import { type BackingName, imageOf } from '../docker/choose-mode.ts';

export interface StartedContainer {
  name: BackingName;
  port: number;
  stop(): Promise<void>;
}

interface ContainerConfig {
  command: string[];
  env: Record<string, string>;
  /** The data folder in the image. It is a named volume, which is kept when the container is removed. */
  dataFolder: string | undefined;
  port: number;
  waitUntilReady: () => Promise<void>;
}

/**
 * Uses the same port inside and outside the container, so that the address that a broker or a replica set member
 * advertises is valid on both sides. (The Kafka and MongoDB modules of testcontainers are not used, because they choose
 * ports and keep no data.)
 */
export async function startContainer(
  name: BackingName,
  ports: BackingPorts,
  stackDir: string,
): Promise<StartedContainer> {
  const { GenericContainer } = await import('testcontainers');
  const { command, env, dataFolder, port, waitUntilReady } = containerConfigs(ports)[name];
  const volume = {
    source: volumeName(name, stackDir),
    target: dataFolder ?? '',
    mode: 'rw' as const,
  };
  const container = await new GenericContainer(imageOf(name))
    .withExposedPorts({ container: port, host: port })
    .withEnvironment(env)
    .withCommand(command)
    .withBindMounts(dataFolder === undefined ? [] : [volume])
    .start();
  await stopUnlessReady(container, waitUntilReady);
  return {
    name,
    port,
    stop: async () => {
      await container.stop({ timeout: 20_000 });
    },
  };
}

async function stopUnlessReady(
  container: StartedTestContainer,
  waitUntilReady: () => Promise<void>,
): Promise<void> {
  try {
    await waitUntilReady();
  } catch (error) {
    await container.stop();
    throw error;
  }
}

function volumeName(name: BackingName, stackDir: string): string {
  return `posthorn-${name}-${createHash('sha256').update(stackDir).digest('hex').slice(0, 12)}`;
}

function containerConfigs(ports: BackingPorts): Record<BackingName, ContainerConfig> {
  return {
    kafka: {
      command: [],
      env: kafkaEnv(ports),
      dataFolder: '/var/lib/kafka/data',
      port: ports.kafka,
      waitUntilReady: () =>
        waitUntil({ what: 'a reply from Kafka', timeoutMs: 60_000, intervalMs: 200 }, () =>
          isKafkaReady(`127.0.0.1:${ports.kafka}`),
        ),
    },
    mongodb: {
      command: ['--replSet', 'rs0', '--bind_ip_all', '--port', String(ports.mongodb)],
      env: {},
      dataFolder: '/data/db',
      port: ports.mongodb,
      waitUntilReady: () => initiateReplicaSet(ports.mongodb, 60_000),
    },
    redis: {
      command: ['redis-server', '--port', String(ports.redis), '--save', ''],
      env: {},
      dataFolder: undefined,
      port: ports.redis,
      waitUntilReady: () =>
        waitUntil({ what: 'a reply from Redis', timeoutMs: 30_000, intervalMs: 100 }, () =>
          isRedisReady('127.0.0.1', ports.redis),
        ),
    },
  };
}

/** Returns the properties as environment variables: the image converts KAFKA_PROCESS_ROLES to process.roles, and so on. */
function kafkaEnv(ports: BackingPorts): Record<string, string> {
  const options = {
    dataDir: '/var/lib/kafka/data',
    port: ports.kafka,
    controllerPort: ports.kafkaController,
  };
  const lines = serverProperties(options).trim().split('\n');
  const variables = lines.map((line) => {
    const [name = '', value = ''] = line.split(/=(.*)/);
    return [`KAFKA_${name.toUpperCase().replaceAll('.', '_')}`, value];
  });
  return {
    ...(Object.fromEntries(variables) as Record<string, string>),
    CLUSTER_ID: '5L6g3nShT-eMCtK--X86sw',
    // In the container, Kafka must listen on all interfaces: its loopback cannot be reached from outside.
    KAFKA_LISTENERS: `PLAINTEXT://:${ports.kafka},CONTROLLER://127.0.0.1:${ports.kafkaController}`,
  };
}
