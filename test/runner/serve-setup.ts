import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { createCompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import { createPeopleStore } from '@posthorn/platform/mongo/companies/people.ts';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { takeStep } from '../../deploy/setup/run-setup.ts';
import { CREATE_INDEXES, CREATE_TOPICS } from '../../deploy/setup/steps.ts';
import { createRecordAdmin } from '../../services/admin/src/command.ts';
import { createCompany } from '../../services/admin/src/companies.ts';
import { loginOf } from '../support/process/secured-logins.ts';
import { createSharedPosthorns, type SharedName } from '../support/process/shared-posthorn.ts';
import {
  SETUP_URL,
  type CreatedCompany,
  type SetupRequest,
  type SetupTask,
} from '../support/process/setup.ts';
import { createDatabasePool } from './database-pool.ts';

type Handle = (request: never) => Promise<unknown>;

/**
 * Does once for all test files what each would do for itself: creates the topics, indexes and companies of Posthorns in
 * one process that has loaded the code, lends databases, and starts the Posthorns that they share. As three programs for
 * each Posthorn, most of the time of the setup went into loading the code.
 */
export async function withSetup(
  work: (env: Record<string, string>) => Promise<void>,
): Promise<void> {
  const databases = createDatabasePool();
  const shared = createSharedPosthorns();
  const handlers: Record<SetupTask, Handle> = {
    company: createCompanyOf,
    shared: ({ name }: { name: SharedName }) => shared.addressOf(name),
    'take-database': () => Promise.resolve({ name: databases.take() }),
    'give-back-database': ({ name }: { name: string }) => {
      databases.giveBack(name);
      return Promise.resolve({});
    },
  };
  const server = createServer((request, response) => {
    const handle = handlers[request.url?.slice(1) as SetupTask];
    json(request)
      .then((body) => handle(body as never))
      .then(
        (answer) => response.end(JSON.stringify(answer)),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
  });
  // A worker asks again after a minute by a connection that it has kept open.
  server.keepAliveTimeout = 0;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    await work({ [SETUP_URL]: `http://127.0.0.1:${port}` });
  } finally {
    await shared.stop();
    server.closeAllConnections();
    server.close();
    await databases.settle();
  }
}

async function createCompanyOf({ env, company, isNew }: SetupRequest): Promise<CreatedCompany> {
  const mongo = await connectMongo(String(env.MONGODB_URL), 'posthorn-test');
  // Only once the collections exist: two connections that create one at once have crashed mongod.
  const setup = loginOf('setup', env);
  try {
    if (isNew) await Promise.all([takeStep(CREATE_TOPICS, setup), takeStep(CREATE_INDEXES, setup)]);
    const companies = createCompanyStore(mongo.db);
    const record = createRecordAdmin(mongo.db);
    const people = createPeopleStore(mongo.db);
    const deps = { companies, people, record, newId: systemIds, nowMs: systemClockMs };
    return await createCompany(deps, company);
  } finally {
    await mongo.close();
  }
}
