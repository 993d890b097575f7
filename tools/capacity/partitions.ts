/** `TOPIC_PARTITIONS` of an installation that sets nothing, and what every other number is a multiple of. */
const STEP = 12;

/**
 * Returns the smallest multiple of 12 that is at least `wanted` and has no prime factor above 5. Such numbers have many
 * divisors, so that there are many numbers of dispatchers with equal shares.
 */
export function partitionsFor(wanted: number): number {
  let partitions = STEP;
  while (partitions < wanted || !isSmooth(partitions)) partitions += STEP;
  return partitions;
}

function isSmooth(number: number): boolean {
  let rest = number;
  for (const prime of [2, 3, 5]) while (rest % prime === 0) rest /= prime;
  return rest === 1;
}

/** Numbers of processes that all own the same number of partitions, ascending: the steps of an autoscaler. */
export function replicaSteps(partitions: number): number[] {
  return Array.from({ length: partitions }, (_, index) => index + 1).filter(
    (replicas) => partitions % replicas === 0,
  );
}

/** Returns the smallest step that is at least `needed`; all partitions when there is none. */
export function dividingReplicas(partitions: number, needed: number): number {
  return replicaSteps(partitions).find((replicas) => replicas >= needed) ?? partitions;
}
