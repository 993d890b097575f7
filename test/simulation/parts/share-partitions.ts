import type { Group, Membership, Place, SimulatedKafka } from './simulated-kafka.ts';
import type { World } from '../run/world.ts';

/** A member that joins with the others, each in its own time. */
const JOIN_MS = 3_000;
/** How long a group does not know that a member died. */
const SESSION_MS = 10_000;

export function enterGroup(
  world: World,
  kafka: SimulatedKafka,
  group: Group,
  member: Membership,
): void {
  group.members.push(member);
  shareOut(world, kafka, group);
}

/** A member that died is missed after a while. */
export function loseMember(
  world: World,
  kafka: SimulatedKafka,
  group: Group,
  member: Membership,
): void {
  world.time.after(world.random.between(0, SESSION_MS), () => {
    group.members = group.members.filter((each) => each !== member);
    shareOut(world, kafka, group);
  });
}

/** Partition p of every topic goes to the same member. What was owned before is of no account. */
export function shareOut(world: World, kafka: SimulatedKafka, group: Group): void {
  group.generation += 1;
  const { generation } = group;
  const members = world.random.shuffled(group.members);
  const places = [...group.topics].flatMap((topic) => kafka.placesOf(topic));
  world.tell(group.id, `generation ${generation} of ${members.length} members`);
  for (const [index, member] of members.entries()) {
    const own = places.filter(({ partition }) => partition % members.length === index);
    join(world, group, { member, own, generation });
  }
}

function join(
  { time, random }: World,
  group: Group,
  { member, own, generation }: { member: Membership; own: Place[]; generation: number },
): void {
  time.after(random.between(0, JOIN_MS), () => {
    // Whoever was called again meanwhile joins the later generation.
    if (group.generation === generation) member.join(generation, own);
  });
}
