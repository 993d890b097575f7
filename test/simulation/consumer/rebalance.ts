import type {
  Group,
  GroupMember,
  TopicPartition,
  SimulatedKafka,
} from '../infrastructure/simulated-kafka.ts';
import type { World } from '../world/world.ts';

/** Members receive their assignments at different times, up to this much after a rebalance. */
const MAX_JOIN_MS = 3_000;
/** A group notices within this time that a member has crashed. */
const SESSION_TIMEOUT_MS = 10_000;

export function joinGroup(
  world: World,
  kafka: SimulatedKafka,
  group: Group,
  member: GroupMember,
): void {
  group.members.push(member);
  rebalance(world, kafka, group);
}

/** Rebalances the group some time after a member has crashed. */
export function removeCrashedMember(
  world: World,
  kafka: SimulatedKafka,
  group: Group,
  member: GroupMember,
): void {
  world.time.after(world.random.between(0, SESSION_TIMEOUT_MS), () => {
    group.members = group.members.filter((each) => each !== member);
    rebalance(world, kafka, group);
  });
}

/** Assigns all partitions in a new generation. Partition p of every topic goes to the same member, whoever had it before. */
export function rebalance(world: World, kafka: SimulatedKafka, group: Group): void {
  group.generation += 1;
  const { generation } = group;
  const members = world.random.shuffled(group.members);
  const partitions = [...group.topics].flatMap((topic) => kafka.topicPartitions(topic));
  world.trace(group.id, `generation ${generation} of ${members.length} members`);
  for (const [index, member] of members.entries()) {
    const own = partitions.filter(({ partition }) => partition % members.length === index);
    assign(world, group, { member, own, generation });
  }
}

function assign(
  { time, random }: World,
  group: Group,
  { member, own, generation }: { member: GroupMember; own: TopicPartition[]; generation: number },
): void {
  time.after(random.between(0, MAX_JOIN_MS), () => {
    // After another rebalance, the member joins the later generation.
    if (group.generation === generation) member.onAssigned(generation, own);
  });
}
