import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { mongo } from 'mongoose';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { StoreUnavailableError } from '../../service/errors.ts';
import { documentsOf } from '../company-documents.ts';
import { ALL_BEFORE, withDays, type Database } from './days.ts';
import { collection } from '../documents/collections.ts';
import { asStoreError } from '../connection/connect.ts';

const MAX_READ_MS = 100;

let database: ScratchDatabase;
let bounded: Database;

beforeAll(async () => {
  database = await openScratchDatabase();
  const days = { layout: () => ALL_BEFORE, nowMs: () => 0 };
  // As in `connectMongo`. The scratch database itself stays as it is.
  bounded = withDays(Object.create(database.db) as mongo.Db, { ...days, maxReadMs: MAX_READ_MS });
  await collection(database.db, 'projects').insertOne({
    _id: 'proj_1',
    companyId: 'comp_a',
    name: 'Shop',
    environment: 'production',
    description: '',
    createdAt: new Date(),
    updatedAt: new Date(),
  });
});

afterAll(() => database.drop());

/** Returns the commands that are sent meanwhile. */
async function commandsOf(run: () => Promise<unknown>): Promise<mongo.Document[]> {
  const commands: mongo.Document[] = [];
  const listen = ({ command }: mongo.CommandStartedEvent): void => void commands.push(command);
  const { client } = database.db;
  client.on('commandStarted', listen);
  await run().finally(() => client.off('commandStarted', listen));
  return commands;
}

const NEVER_ENDS = { $where: 'while (true) {}' };

describe('the database of requests', () => {
  it.each<[string, (db: Database) => Promise<unknown>]>([
    ['find', (db) => documentsOf(db, 'projects', 'comp_a').find(NEVER_ENDS).toArray()],
    ['findOne', (db) => documentsOf(db, 'projects', 'comp_a').findOne(NEVER_ENDS)],
  ])(
    'ends a read in MongoDB that takes too long, as if MongoDB were away: %s',
    async (_name, read) => {
      const error = await read(bounded).catch((thrown: unknown) => thrown);
      expect(asStoreError(error)).toBeInstanceOf(StoreUnavailableError);
    },
  );

  it.each<[string, (db: Database) => Promise<unknown>]>([
    ['find', (db) => collection(db, 'projects').find().toArray()],
    ['findOne', (db) => collection(db, 'projects').findOne({ _id: 'proj_1' })],
    ['aggregate', (db) => collection(db, 'projects').aggregate([]).toArray()],
    ['countDocuments', (db) => collection(db, 'projects').countDocuments({})],
    ['the documents of a company', (db) => documentsOf(db, 'projects', 'comp_a').count({})],
    ['messages', (db) => db.days.messages.of('msg_1').findOne({ _id: 'msg_1' })],
  ])('gives MongoDB a time for each read, and other work has none: %s', async (_name, read) => {
    const [sent] = await commandsOf(() => read(bounded));
    expect(sent?.maxTimeMS).toBe(MAX_READ_MS);
    const [unbounded] = await commandsOf(() => read(database.db));
    expect(unbounded).not.toHaveProperty('maxTimeMS');
  });

  it('finds the same documents, and gives writes no time', async () => {
    const projects = documentsOf(bounded, 'projects', 'comp_a');
    const commands = await commandsOf(() =>
      projects.updateOne({ _id: 'proj_1' }, { $set: { name: 'Mall' } }),
    );
    for (const command of commands) expect(command).not.toHaveProperty('maxTimeMS');
    expect(await collection(database.db, 'projects').findOne({ _id: 'proj_1' })).toMatchObject({
      name: 'Mall',
    });
  });
});
