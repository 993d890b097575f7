import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import { readAppliedIndexes } from '@posthorn/platform/mongo/indexes.ts';
import { newEncryptionKey } from '../../../deploy/setup/create-encryption-keys.ts';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { createNamespace } from '../../support/process/namespace.ts';
import { LOCAL } from '../../support/process/posthorn.ts';
import {
  runProgram,
  startProgram,
  untilReady,
  type ProgramProcess,
} from '../../support/process/service-process.ts';
import { setUp } from '../../support/process/setup.ts';
import { eventually } from '../../support/time/eventually.ts';

const CREATE = 'deploy/setup/create-indexes.ts';
const env = { ...createNamespace(), ...LOCAL, ENCRYPTION_KEYS: newEncryptionKey() };
/** Enough to take MongoDB a second. */
const FILLER = 200_000;
/** Far less than the build takes: with pauses of up to a second a busy machine missed the whole build. */
const LOOK_EVERY_MS = 20;
const SLOW = 'companyId_1_targetId_1__id_1';

describe('Indexes of a running installation', () => {
  let mongo: MongoConnection;
  let gateway: ProgramProcess | null = null;

  beforeAll(async () => {
    await setUp({ env, company: 'Test', isNew: true });
    mongo = await connectMongo(env.MONGODB_URL, 'posthorn-test');
  });

  afterAll(async () => {
    await gateway?.stop();
    await mongo.close();
  });

  const pending = async () => (await readAppliedIndexes(mongo.db))?.pending;

  /** Null when an index was dropped or finished while MongoDB was reading: it answers with an error then. */
  async function indexStats(): Promise<{ name: string; building?: boolean }[] | null> {
    const read = mongo.db
      .collection('auditEvents')
      .aggregate<{ name: string; building?: boolean }>([{ $indexStats: {} }]);
    return read.toArray().catch((error: unknown) => {
      if (String(error).includes('Could not find entry in IndexCatalog')) return null;
      throw error;
    });
  }

  /** True while MongoDB builds the index, false when it is ready, null when there is none. */
  async function isBuilding(name: string): Promise<boolean | null> {
    const stats = await eventually('index statistics', indexStats, 20_000, LOOK_EVERY_MS);
    const found = stats.find((each) => each.name === name);
    return found ? found.building === true : null;
  }

  it('are finished by the next run when create-indexes is killed in the middle', async () => {
    const events = mongo.db.collection('auditEvents');
    await events.dropIndex(SLOW);
    for (let n = 0; n < FILLER; n += 20_000) {
      const documents = Array.from({ length: 20_000 }, (_, i) => ({
        targetId: `wh_${(i * 7_919) % 20_000}-${n}`,
        companyId: 'comp_x',
      }));
      await events.insertMany(documents, { ordered: false });
    }
    const killed = startProgram(CREATE, [], env);
    const isSeen = async () => (await isBuilding(SLOW)) === true;
    await eventually('the build', isSeen, 60_000, LOOK_EVERY_MS);
    killed.signal('SIGKILL');
    await killed.ended;
    expect(await pending()).toContain(`auditEvents.${SLOW}`);
    expect(await isBuilding(SLOW)).not.toBeNull();
    expect(await runProgram(CREATE, [], env)).toContain('collections and indexes exist');
    expect(await pending()).toEqual([]);
    expect(await isBuilding(SLOW)).toBe(false);
  }, 120_000);

  it('keep a gateway from serving while a unique one is missing, which /readyz reports', async () => {
    const index = 'companyId_1_spanOf_1';
    await mongo.db.collection('resends').dropIndex(index);
    // One that only speeds up queries does not.
    await mongo.db.collection('resends').dropIndex('companyId_1__id_1');
    const [port = 0, opsPort = 0] = await freePorts(2);
    const ports = { PORT: String(port), OPS_PORT: String(opsPort) };
    gateway = startProgram('services/gateway/src/main.ts', [], { ...env, ...ports });
    let answer = '';
    await eventually(
      'the reason',
      async () => {
        const response = await fetch(`http://127.0.0.1:${opsPort}/readyz`).catch(() => null);
        answer = (await response?.text()) ?? '';
        return answer.includes(index);
      },
      60_000,
    );
    expect(answer).toBe(
      `MongoDB has no unique index resends.${index}, or has not finished it: run ${CREATE}\n`,
    );
    await expect(fetch(`http://127.0.0.1:${port}/openapi.json`)).rejects.toThrow();
    await runProgram(CREATE, [], env);
    await untilReady(gateway, opsPort);
    await mongo.db.collection('resends').dropIndex('companyId_1__id_1');
    await gateway.stop();
    gateway = startProgram('services/gateway/src/main.ts', [], { ...env, ...ports });
    await untilReady(gateway, opsPort);
  }, 120_000);
});
