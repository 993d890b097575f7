import { stringify } from 'yaml';

/** `TOPIC_PARTITIONS` of k8s/base. */
export const DEFAULT_PARTITIONS = 12;
const SCALED = ['dispatcher', 'retry'];
const MIN_REPLICAS = 2;

/**
 * Returns the smallest divisor of `partitions` that is not below the metric, as PromQL: 1, and for each step the difference to the
 * next one when the metric is above it. Of a metric above the last step it is that step.
 */
export function stepsExpression(metric: string, partitions: number): string {
  const steps = replicaSteps(partitions);
  const terms = steps.slice(0, -1).map((step, index) => {
    const more = (steps[index + 1] ?? step) - step;
    return `\n  + ${more} * (max by (namespace) (${metric}) > bool ${step})`;
  });
  // Without terms it would have a value in no namespace.
  return steps.length === 1 ? `max by (namespace) (${metric}) > bool -1\n` : `1${terms.join('')}\n`;
}

/** Returns the rules that round up what posthorn-scaling says is needed. */
export function stepsGroup(partitions: number): object {
  return {
    name: 'posthorn-scaling-steps',
    interval: '15s',
    rules: SCALED.map((service) => ({
      record: `posthorn:${service}_replicas:steps`,
      expr: stepsExpression(`posthorn:${service}_replicas:needed`, partitions),
    })),
  };
}

/** Returns patches for an overlay with this number of partitions: the steps, and the limits of both autoscalers. */
export function stepsPatches(partitions: number): object[] {
  const limits = {
    minReplicaCount: dividingReplicas(partitions, MIN_REPLICAS),
    maxReplicaCount: partitions,
  };
  const scaledObjects = SCALED.map((service) => ({
    apiVersion: 'keda.sh/v1alpha1',
    kind: 'ScaledObject',
    metadata: { name: `posthorn-${service}` },
    spec: limits,
  }));
  const rule = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'posthorn-scaling-steps' },
    spec: { groups: [stepsGroup(partitions)] },
  };
  return [rule, ...scaledObjects];
}

export function yamlOf(...documents: object[]): string {
  const options = { lineWidth: 0, aliasDuplicateObjects: false };
  return documents.map((document) => stringify(document, options)).join('---\n');
}

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
