import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createLocalAdmin } from '../../tools/local-stack/stores/kafka-native.ts';
import { SERVICES } from '../../tools/local-stack/supervisor/services.ts';
import { CLOSED_CONNECTION, NO_ANSWER, REFUSED_CONNECTION } from '../load/client.ts';
import type { Round } from '../round.ts';
import { MEMBERS, startMembers, USUAL_LAYOUT } from '../stack/fleet.ts';

const AWAY = ['503', '409', CLOSED_CONNECTION, NO_ANSWER];
const RECOVER_MS = 90_000;
/** How long after the loss the stuck deliveries are published again. */
const RECONCILE_AFTER_S = 20;
const RECONCILING = {
  ...USUAL_LAYOUT,
  settings: { ...USUAL_LAYOUT.settings, RECONCILE_AFTER: `${RECONCILE_AFTER_S}s` },
};

/** The size leaves room for the data of a round; the rest is filled by the fault. */
function fullDisk(store: 'kafka' | 'mongodb', mebibytes: number): Round {
  return {
    name: `full-disk-${store}`,
    summary: `the disk of ${store} is full; then space is freed and ${store} is restarted`,
    promise:
      '503 meanwhile (MongoDB) or accepted and delivered later (Kafka), 0 lost, 0 duplicates',
    seconds: [20],
    layout: { ...USUAL_LAYOUT, smallDisk: { store, mebibytes } },
    answers: AWAY,
    recoverWithinMs: () => RECOVER_MS,
    spoilsStack: true,
    async inject({ disk, stores, pause, say, seconds }) {
      disk?.fill();
      say(`the disk of ${store} is full for ${seconds} s`);
      await pause(seconds * 1_000);
      disk?.free();
      // With a full disk either store has exited, or cannot be trusted any more.
      await stores[store].kill();
      await stores[store].start();
      say('the disk has space again');
      return { endedAtMs: Date.now() };
    },
  };
}

const RESTORED: Round = {
  name: 'restored-mongodb',
  summary: 'MongoDB is restored from a backup that is older than the offsets of Kafka',
  promise:
    '0 lost of what the backup has and of what is accepted afterwards, deliveries that are pending in it are published again after RECONCILE_AFTER, no service ends',
  seconds: [10],
  layout: RECONCILING,
  answers: AWAY,
  recoverWithinMs: () => RECOVER_MS + RECONCILE_AFTER_S * 1_000,
  spoilsStack: true,
  async inject({ stackDir, stores, pause, say, seconds }) {
    const [data, backup] = [join(stackDir, 'mongodb'), join(stackDir, 'backup')];
    await stores.mongodb.stop();
    cpSync(data, backup, { recursive: true });
    await stores.mongodb.start();
    const fromMs = Date.now();
    say('a backup is taken');
    await pause(seconds * 1_000);
    await stores.mongodb.stop();
    const toMs = Date.now();
    rmSync(data, { recursive: true });
    cpSync(backup, data, { recursive: true });
    rmSync(backup, { recursive: true });
    await stores.mongodb.start();
    say('the backup is restored');
    // What was pending in the backup may be sent again: the backup does not show that it was sent.
    const excuses = [{ reason: 'not yet in the backup', fromMs: fromMs - seconds * 1_000, toMs }];
    return {
      endedAtMs: Date.now(),
      excuses,
      forgotten: { fromMs: fromMs - FORGOTTEN_MARGIN_MS, toMs },
    };
  },
};

/** A message may be accepted just before the backup is taken and get its response just after. */
const FORGOTTEN_MARGIN_MS = 1_000;

/** Where first attempts, failures and retries wait. */
const DELETED_TOPICS = ['message-created', 'delivery-failed', 'retry.3s'];

const DELETED: Round = {
  name: 'deleted-topics',
  summary:
    'the topics of first attempts, failures and one delay are deleted and created again, empty',
  promise:
    'what was in them is published again after RECONCILE_AFTER, 0 lost, nobody has to restart a service',
  seconds: [10],
  recoverWithinMs: () => RECOVER_MS + RECONCILE_AFTER_S * 1_000,
  spoilsStack: true,
  async inject({ fleet, stores, run, say, pause, seconds }) {
    // Before the fault, so that the stack may be that of other rounds.
    for (const member of ['retry-1', 'retry-2'] as const) {
      await fleet.stop(member);
      await fleet.start(member, { env: RECONCILING.settings });
    }
    const admin = createLocalAdmin(stores.addresses.kafkaBrokers);
    await admin.connect();
    await admin.deleteTopics({ topics: DELETED_TOPICS.map((name) => `posthorn.${name}`) });
    await admin.disconnect();
    say(`${DELETED_TOPICS.join(', ')} are deleted`);
    await pause(seconds * 1_000);
    await run('deploy/setup/create-topics.ts');
    say('they are created again');
    return { endedAtMs: Date.now(), areRecordsDeleted: true };
  },
};

/** Services that read topics; the gateways are restarted after them (docs/partitions.md). */
const READERS = MEMBERS.filter((member) => !member.startsWith('gateway'));
const GATEWAYS = MEMBERS.filter((member) => member.startsWith('gateway'));

const PARTITIONS: Round = {
  name: 'more-partitions',
  touches: SERVICES,
  summary: 'partitions are raised from 12 to 24 under load, as docs/partitions.md says',
  promise: '0 lost, 0 duplicates, no retry early, lag below 2 s within 60 s after the last restart',
  seconds: [10],
  answers: [REFUSED_CONNECTION, CLOSED_CONNECTION],
  losesNoAnswer: true,
  recoverWithinMs: () => 60_000,
  spoilsStack: true,
  async inject({ fleet, run, say }) {
    await Promise.all(READERS.map((member) => fleet.stop(member)));
    const said = await run('deploy/setup/add-partitions.ts', [], { TOPIC_PARTITIONS: '24' });
    say(said.trim());
    await startMembers(fleet, READERS);
    for (const member of GATEWAYS) {
      await fleet.stop(member);
      await fleet.start(member);
    }
    return { endedAtMs: Date.now() };
  },
};

export const STORE_FAULTS: readonly Round[] = [
  fullDisk('kafka', 512),
  fullDisk('mongodb', 768),
  RESTORED,
  DELETED,
  PARTITIONS,
];
