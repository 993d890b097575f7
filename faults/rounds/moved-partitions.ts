import type { Admin } from 'kafkajs';
import { createLocalAdmin } from '../../tools/local-stack/stores/kafka-native.ts';
import type { Round, Scene } from '../round.ts';

const OWN_TOPICS = 'posthorn.';
const [FIRST, SECOND] = [1, 2];
const RECOVER_MS = 30_000;
const MOVED_WITHIN_MS = 60_000;

/** Partition → the topics that have it. */
type Partitions = ReadonlyMap<number, readonly string[]>;

/** A broker that gives a partition up may have stored what it then refuses: 6 records of 7,419. */
function copiesOfRefused(deliveries: number): number {
  return 20 + 0.005 * deliveries;
}

export const MOVED_PARTITIONS: Round = {
  name: 'moved-partitions',
  summary:
    'a second broker joins Kafka, every partition moves to it, one after the other, and back',
  promise: '0 lost, 0 duplicates, few copies, lag below 2 s within 30 s',
  seconds: [24],
  maxCopies: copiesOfRefused,
  recoverWithinMs: () => RECOVER_MS,
  spoilsStack: true,
  async inject(scene) {
    const { stores, say } = scene;
    const second = await stores.startSecondBroker();
    const admin = createLocalAdmin(stores.addresses.kafkaBrokers);
    await admin.connect();
    try {
      const partitions = await readPartitions(admin);
      for (const broker of [SECOND, FIRST]) {
        await moveAll(scene, { admin, partitions, broker });
        say(`broker ${broker} leads every partition`);
      }
    } finally {
      await admin.disconnect();
    }
    await second.stop();
    return { endedAtMs: Date.now() };
  },
};

async function readPartitions(admin: Admin): Promise<Partitions> {
  const { topics } = await admin.fetchTopicMetadata();
  const own = topics.filter(({ name }) => name.startsWith(OWN_TOPICS));
  const places = own.flatMap(({ name, partitions }) =>
    partitions.map(({ partitionId }) => ({ name, partitionId })),
  );
  const byPartition = Map.groupBy(places, ({ partitionId }) => partitionId);
  return new Map([...byPartition].map(([id, of]) => [id, of.map(({ name }) => name)]));
}

interface Move {
  admin: Admin;
  partitions: Partitions;
  broker: number;
}

/** Moves partition 0 of every topic, then partition 1 and so on, for half of the time of the round. */
async function moveAll(scene: Scene, { admin, partitions, broker }: Move): Promise<void> {
  const { pause, until, seconds } = scene;
  for (const [partition, topics] of partitions) {
    const partitionAssignment = [{ partition, replicas: [broker] }];
    await admin.alterPartitionReassignments({
      topics: topics.map((topic) => ({ topic, partitionAssignment })),
    });
    const isMoved = async (): Promise<boolean> => {
      const { topics: moving } = await admin.listPartitionReassignments({});
      return moving.length === 0;
    };
    await until(`partition ${partition} on broker ${broker}`, isMoved, MOVED_WITHIN_MS);
    await pause((seconds * 1_000) / 2 / partitions.size);
  }
}
