import mongoose from 'mongoose';
import { CLOSED_CONNECTION, NO_ANSWER } from '../load/client.ts';
import type { Round, Scene } from '../round.ts';
import type { Store } from '../stack/store.ts';
import { type Absence, beAway, frozen, killed } from './kafka-away.ts';

const mongodbOf = ({ stores }: Scene): Store => stores.mongodb;
const ANSWERS = ['503', '409', CLOSED_CONNECTION, NO_ANSWER];

const stalled: Absence = {
  name: 'writes stalled',
  leave: (scene) => runAsAdmin(scene, { fsync: 1, lock: true }),
  come: (scene) => runAsAdmin(scene, { fsyncUnlock: 1 }),
};

async function runAsAdmin({ stores }: Scene, command: Record<string, unknown>): Promise<void> {
  const { host } = new URL(stores.addresses.mongodbUrl);
  const client = new mongoose.mongo.MongoClient(`mongodb://${host}/?directConnection=true`);
  try {
    await client.db().admin().command(command);
  } finally {
    await client.close();
  }
}

function recoverWithinMs(seconds: number): number {
  return Math.max(60_000, seconds * 1_000);
}

const away = [frozen(mongodbOf), killed(mongodbOf)].map((absence): Round => ({
  name: `F8-${absence.name}`,
  summary: `the primary of MongoDB is away: ${absence.name}`,
  promise: '503 meanwhile, 0 lost, 0 duplicates, no delivery in a wrong state',
  seconds: [15, 30, 60],
  answers: ANSWERS,
  keepsNothing: true,
  recoverWithinMs,
  async inject(scene) {
    await beAway(scene, absence, 'MongoDB');
    return { endedAtMs: Date.now() };
  },
}));

/**
 * The replica set of the local stack has one member, so a majority cannot stall while the primary works. The nearest
 * fault is a member that answers reads and confirms no write.
 */
const majority: Round = {
  name: 'F8-stalled',
  summary: 'MongoDB answers reads and confirms no write (stands for a stalled majority)',
  promise: '503 meanwhile, 0 lost, 0 duplicates',
  seconds: [600],
  answers: ANSWERS,
  keepsNothing: true,
  recoverWithinMs,
  async inject(scene) {
    await beAway(scene, stalled, 'MongoDB');
    return { endedAtMs: Date.now() };
  },
};

export const MONGODB_AWAY: readonly Round[] = [...away, majority];
