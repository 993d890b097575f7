import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { SettledDelivery } from '@posthorn/domain/delivery/settlement.ts';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { connectMongo, type MongoConnection } from './connect.ts';
import { writeLayout } from './days/layout.ts';
import { createDeliveryStore } from './messages/deliveries.ts';
import { createMessageStore } from './messages/messages.ts';

/** A connection to the real store that can be cut. */
async function startProxy(host: string, port: number) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const upstream = connect(port, host);
    for (const each of [socket, upstream]) {
      sockets.add(each);
      each.on('error', () => each.destroy());
    }
    socket.pipe(upstream).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

const DELIVERY: SettledDelivery = {
  id: 'dlv_1',
  messageId: 'msg_1',
  webhookId: 'wh_1',
  companyId: 'comp_1',
  appId: null,
  status: 'delivered',
  reason: null,
  attempt: null,
  nextAttemptAtMs: null,
  createdAtMs: 0,
  updatedAtMs: 0,
};

const MESSAGE = {
  id: 'msg_1',
  companyId: 'comp_1',
  appId: null,
  payload: '{}',
  targets: [],
  publisherId: 'gw_1',
  eventType: null,
  disabledTargets: new Set<string>(),
  idempotency: null,
  requestId: 'request-1',
  createdAtMs: 0,
};

describe('a store that becomes unreachable', () => {
  let mongo: MongoConnection;

  beforeAll(async () => {
    const url = new URL(createNamespace().MONGODB_URL);
    const proxy = await startProxy(url.hostname, Number(url.port));
    url.host = `127.0.0.1:${proxy.port}`;
    url.search = '?directConnection=true';
    mongo = await connectMongo(url.href, 'posthorn-test');
    await writeLayout(mongo.db, { retentionDays: 30, isSharded: false }, new Date());
    await mongo.readLayout();
    proxy.cut();
  });

  afterAll(() => mongo.close());

  it('rejects the recording of outcomes', async () => {
    await expect(createDeliveryStore(mongo.db).insertAll([DELIVERY])).rejects.toThrow();
  });

  it('reports messages as unconfirmed, neither stored nor refused', async () => {
    expect(await createMessageStore(mongo.db).insertAll([MESSAGE])).toEqual(['unconfirmed']);
  });
});
