import { createHash } from 'node:crypto';
import type { StartedTestContainer } from 'testcontainers';
import { kafkaAnswers } from '../kafka/answers.ts';
import { serverProperties } from '../kafka/server-properties.ts';
import { leadReplicaSet } from '../mongodb/replica-set.ts';
import { redisAnswers } from '../stores/redis-native.ts';
import type { BackingPorts } from '../settings.ts';
import { until } from '../waiting.ts';
import { type BackingName, imageOf } from './images.ts';

export interface StartedContainer {
  name: BackingName;
  port: number;
  stop(): Promise<void>;
}

interface Recipe {
  command: string[];
  env: Record<string, string>;
  /** Where the image keeps its data; in a named volume it outlives the container. */
  dataFolder: string | undefined;
  port: number;
  ready: () => Promise<void>;
}

/**
 * The port is the same inside and outside, so that the address a broker or a replica set member tells its clients is
 * right on both sides. (The Kafka and MongoDB modules of testcontainers choose ports and keep no data, hence not used.)
 */
export async function startContainer(
  name: BackingName,
  ports: BackingPorts,
  stackDir: string,
): Promise<StartedContainer> {
  const { GenericContainer } = await import('testcontainers');
  const { command, env, dataFolder, port, ready } = recipes(ports)[name];
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
  await readyOrStop(container, ready);
  return {
    name,
    port,
    stop: async () => {
      await container.stop({ timeout: 20_000 });
    },
  };
}

async function readyOrStop(
  container: StartedTestContainer,
  ready: () => Promise<void>,
): Promise<void> {
  try {
    await ready();
  } catch (error) {
    await container.stop();
    throw error;
  }
}

function volumeName(name: BackingName, stackDir: string): string {
  return `posthorn-${name}-${createHash('sha256').update(stackDir).digest('hex').slice(0, 12)}`;
}

function recipes(ports: BackingPorts): Record<BackingName, Recipe> {
  return {
    kafka: {
      command: [],
      env: kafkaEnv(ports),
      dataFolder: '/var/lib/kafka/data',
      port: ports.kafka,
      ready: () =>
        until({ what: 'An answer of Kafka', timeoutMs: 60_000, intervalMs: 200 }, () =>
          kafkaAnswers(`127.0.0.1:${ports.kafka}`),
        ),
    },
    mongodb: {
      command: ['--replSet', 'rs0', '--bind_ip_all', '--port', String(ports.mongodb)],
      env: {},
      dataFolder: '/data/db',
      port: ports.mongodb,
      ready: () => leadReplicaSet(ports.mongodb, 60_000),
    },
    redis: {
      command: ['redis-server', '--port', String(ports.redis), '--save', ''],
      env: {},
      dataFolder: undefined,
      port: ports.redis,
      ready: () =>
        until({ what: 'An answer of Redis', timeoutMs: 30_000, intervalMs: 100 }, () =>
          redisAnswers('127.0.0.1', ports.redis),
        ),
    },
  };
}

/** The image turns KAFKA_PROCESS_ROLES into process.roles, and so on. */
function kafkaEnv(ports: BackingPorts): Record<string, string> {
  const place = {
    dataDir: '/var/lib/kafka/data',
    port: ports.kafka,
    controllerPort: ports.kafkaController,
  };
  const lines = serverProperties(place).trim().split('\n');
  const named = lines.map((line) => {
    const [name = '', value = ''] = line.split(/=(.*)/);
    return [`KAFKA_${name.toUpperCase().replaceAll('.', '_')}`, value];
  });
  return {
    ...(Object.fromEntries(named) as Record<string, string>),
    CLUSTER_ID: '5L6g3nShT-eMCtK--X86sw',
    // Inside the container the port must be open to its network, not to its own loopback only.
    KAFKA_LISTENERS: `PLAINTEXT://:${ports.kafka},CONTROLLER://127.0.0.1:${ports.kafkaController}`,
  };
}
