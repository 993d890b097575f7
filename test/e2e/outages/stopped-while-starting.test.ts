import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { newEncryptionKey } from '../../../deploy/setup/create-encryption-keys.ts';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { createNamespace, type Namespace } from '../../support/process/namespace.ts';
import { LOCAL } from '../../support/process/posthorn.ts';
import { startProgram, type ServiceProcess } from '../../support/process/service-process.ts';
import { setUp } from '../../support/process/setup.ts';
import { startStoreProxy, type StoreProxy } from '../../support/process/store-proxy.ts';
import { eventually } from '../../support/time/eventually.ts';

const DRAIN_MS = 2_000;
const CLOSING_MS = 10_000;

const STORES = {
  MONGODB_URL: ({ MONGODB_URL }: Namespace) => MONGODB_URL,
  KAFKA_BROKERS: ({ KAFKA_BROKERS }: Namespace) => `kafka://${KAFKA_BROKERS}`,
};

describe('A gateway that is stopped while it starts', () => {
  const env = { ...createNamespace(), ...LOCAL, ENCRYPTION_KEYS: newEncryptionKey() };
  let proxy: StoreProxy;
  let gateway: ServiceProcess;

  beforeAll(async () => {
    await setUp({ env, company: 'Company', isNew: true });
  }, 60_000);

  afterEach(() => proxy.close());

  async function start(setting: keyof typeof STORES): Promise<void> {
    proxy = await startStoreProxy(STORES[setting](env));
    proxy.freeze();
    const [port = 0, opsPort = 0] = await freePorts(2);
    gateway = startProgram('services/gateway/src/main.ts', [], {
      ...env,
      [setting]: proxy.url.replace('kafka://', ''),
      PORT: String(port),
      OPS_PORT: String(opsPort),
      DRAIN_TIMEOUT_MS: String(DRAIN_MS),
    });
  }

  it.each(['MONGODB_URL', 'KAFKA_BROKERS'] as const)(
    'ends with 0 when the store of %s is frozen',
    async (setting) => {
      await start(setting);
      await eventually('it connects', () => proxy.connections() > 0);
      const startedMs = performance.now();
      expect(await gateway.stop()).toEqual({ code: 0, signal: null });
      expect(performance.now() - startedMs).toBeLessThan(DRAIN_MS + CLOSING_MS);
    },
    60_000,
  );
});
