import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { createCompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { takeStep } from '../../deploy/setup/run-setup.ts';
import { CREATE_INDEXES, CREATE_TOPICS } from '../../deploy/setup/steps.ts';
import { createRecordAdmin } from '../../services/admin/src/command.ts';
import { createCompany } from '../../services/admin/src/companies.ts';
import { loginOf } from '../support/process/secured-logins.ts';
import { SETUP_URL, type CreatedCompany, type SetupRequest } from '../support/process/setup.ts';

/**
 * Creates the topics, indexes and companies of the Posthorns that test files start, in one process that has loaded the
 * code. As three programs for each Posthorn, most of their time went into loading it.
 */
export async function withSetup(
  work: (env: Record<string, string>) => Promise<void>,
): Promise<void> {
  const server = createServer((request, response) => {
    answer(request).then(
      (body) => response.end(JSON.stringify(body)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    await work({ [SETUP_URL]: `http://127.0.0.1:${port}` });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function answer(request: IncomingMessage): Promise<CreatedCompany> {
  const { env, company, isNew } = (await json(request)) as SetupRequest;
  const mongo = await connectMongo(String(env.MONGODB_URL), 'posthorn-test');
  // Only once the collections exist: two connections that create one at once have crashed mongod.
  const setup = loginOf('setup', env);
  try {
    if (isNew) await Promise.all([takeStep(CREATE_TOPICS, setup), takeStep(CREATE_INDEXES, setup)]);
    const companies = createCompanyStore(mongo.db);
    const record = createRecordAdmin(mongo.db);
    const deps = { companies, record, newId: systemIds, nowMs: systemClockMs };
    return await createCompany(deps, company);
  } finally {
    await mongo.close();
  }
}
