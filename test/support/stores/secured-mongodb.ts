import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import mongoose from 'mongoose';
import { DATABASE_USERS, privilegesOf } from '../../../deploy/setup/mongodb-rights.ts';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { ensurePrograms } from '../../../tools/local-stack/machine/required-programs.ts';
import {
  findMongod,
  mongodbPrograms,
  startMongodb,
} from '../../../tools/local-stack/stores/mongodb-native.ts';
import type { Children } from '../../../tools/local-stack/processes/children.ts';
import { waitUntil, type Log } from '../../../tools/local-stack/waiting.ts';
import { selfSigned } from '../receivers/self-signed.ts';
import { MONGODB_PASSWORD, TESTS } from '../process/secured-logins.ts';

const { MongoClient } = mongoose.mongo;
type Admin = ReturnType<InstanceType<typeof MongoClient>['db']>;

export interface SecuredMongodb {
  /** As the user of the tests, who may do everything. */
  url: string;
  /** Without TLS, past the listener with TLS. */
  plaintextUrl: string;
  close: () => Promise<void>;
}

interface Options {
  /** Has the data, the log and, with the Windows build, a wine prefix. */
  dir: string;
  children: Children;
  log: Log;
}

/**
 * Starts a mongod that asks for a login (SCRAM, key file), with one user for each process that may do what
 * docs/security.md lists, and nothing else. In front of it is a listener with TLS: the Windows build cannot
 * open one under wine, where creating the chain engine for certificates fails.
 */
export async function startSecuredMongodb({
  dir,
  children,
  log,
}: Options): Promise<SecuredMongodb> {
  mkdirSync(dir, { recursive: true });
  const [port = 0] = await freePorts(1);
  const keyFile = join(dir, 'key-file');
  writeFileSync(keyFile, randomBytes(96).toString('base64'), { mode: 0o600 });
  const source = await findMongod(children, log);
  await ensurePrograms(mongodbPrograms(source), children, log);
  await startMongodb({
    stackDir: dir,
    dir: join(dir, 'data'),
    port,
    source,
    children,
    logPath: join(dir, 'mongod.log'),
    log,
    login: { keyFile, initiate, shutDown },
  });
  const front = await openTls(dir, port);
  const query = 'directConnection=true&authSource=admin';
  const login = `${TESTS}:${MONGODB_PASSWORD}@`;
  return {
    url: `mongodb://${login}localhost:${front.port}/posthorn?${query}&tls=true&tlsCAFile=${front.caFile}`,
    plaintextUrl: `mongodb://${login}127.0.0.1:${port}/posthorn?${query}`,
    close: front.close,
  };
}

/** The first commands on a new server need no login, until its first user exists. */
async function initiate(port: number): Promise<void> {
  const what = { what: `MongoDB on port ${port} to accept writes`, timeoutMs: 60_000 };
  let isInitiated = false;
  await waitUntil(what, async () => {
    try {
      return await withAdmin(`mongodb://127.0.0.1:${port}`, async (admin) => {
        if (!isInitiated) await admin.command({ replSetInitiate: configOf(port) });
        isInitiated = true;
        return (await admin.command({ hello: 1 })).isWritablePrimary === true;
      });
    } catch {
      // Not listening yet.
      return false;
    }
  });
  await withAdmin(`mongodb://127.0.0.1:${port}`, async (admin) => {
    await admin.command({ createUser: TESTS, pwd: MONGODB_PASSWORD, roles: ['root'] });
  });
  await withAdmin(adminUrl(port), createUsers);
}

const configOf = (port: number): object => ({
  _id: 'rs0',
  members: [{ _id: 0, host: `127.0.0.1:${port}` }],
});

const adminUrl = (port: number): string =>
  `mongodb://${TESTS}:${MONGODB_PASSWORD}@127.0.0.1:${port}/?authSource=admin`;

/** The role is for these collections of every database, as each test has a database of its own. */
async function createUsers(admin: Admin): Promise<void> {
  for (const user of DATABASE_USERS) {
    const role = `posthorn-${user}`;
    await admin.command({ createRole: role, privileges: privilegesOf(user, ''), roles: [] });
    await admin.command({ createUser: user, pwd: MONGODB_PASSWORD, roles: [role] });
  }
}

async function shutDown(port: number): Promise<void> {
  await withAdmin(adminUrl(port), async (admin) => {
    await admin.command({ shutdown: 1, force: true, timeoutSecs: 2 });
  });
}

async function withAdmin<T>(url: string, use: (admin: Admin) => Promise<T>): Promise<T> {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: 2_000, directConnection: true });
  try {
    return await use(client.db('admin'));
  } finally {
    await client.close();
  }
}

interface Front {
  port: number;
  caFile: string;
  close: () => Promise<void>;
}

/** Forwards what arrives over TLS. */
async function openTls(dir: string, port: number): Promise<Front> {
  const { key, cert } = selfSigned('localhost');
  const caFile = join(dir, 'mongodb-ca.pem');
  writeFileSync(caFile, cert);
  const sockets = new Set<Socket>();
  const server = createServer({ key, cert }, (inner) => {
    const outer = connect(port, '127.0.0.1');
    for (const [one, other] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const close = async (): Promise<void> => {
    server.close();
    for (const socket of sockets) socket.destroy();
    await once(server, 'close');
  };
  return { port: address.port, caFile, close };
}
