import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  secondBroker,
  newClusterId,
  startNativeKafka,
  type NativeKafka,
} from '../../../tools/local-stack/stores/kafka-native.ts';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';

/** A cluster of two brokers, whose ids are 1 and 2. The first is its controller too. */
export interface TwoBrokers {
  brokers: string[];
  stop: () => Promise<void>;
}

export async function startTwoBrokers(): Promise<TwoBrokers> {
  const [port = 0, controllerPort = 0, otherPort = 0, unusedPort = 0] = await freePorts(4);
  const dir = mkdtempSync(join(tmpdir(), 'posthorn-two-brokers-'));
  const common = { clusterId: newClusterId(), log: () => undefined };
  const first = await startNativeKafka({
    ...common,
    dir: join(dir, 'first'),
    port,
    controllerPort,
  });
  const startSecond = (): Promise<NativeKafka> =>
    startNativeKafka({
      ...common,
      dir: join(dir, 'second'),
      port: otherPort,
      controllerPort: unusedPort,
      properties: secondBroker({ port: otherPort, controllerPort }),
    });
  const stopFirst = async (): Promise<void> => {
    await first.stop();
    rmSync(dir, { recursive: true, force: true });
  };
  const second = await startSecond().catch(async (error: unknown) => {
    await stopFirst();
    throw error;
  });
  return {
    brokers: [first.brokers, second.brokers],
    async stop() {
      await second.stop();
      await stopFirst();
    },
  };
}
