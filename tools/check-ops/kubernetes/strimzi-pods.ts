import type { KubernetesObject } from './rendered.ts';

/** What Strimzi takes from a template: contexts only, the rest of the pods is its own. */
interface Template {
  pod?: { securityContext?: object };
  kafkaContainer?: ContainerTemplate;
  initContainer?: ContainerTemplate;
  topicOperatorContainer?: ContainerTemplate;
  userOperatorContainer?: ContainerTemplate;
}

interface ContainerTemplate {
  securityContext?: object;
}

interface KafkaSpec {
  kafka: { template?: Template; rack?: object };
  entityOperator?: { topicOperator?: object; userOperator?: object; template?: Template };
}

export interface PodTemplate {
  name: string;
  template: object;
}

const CLUSTER = 'strimzi.io/cluster';

/**
 * Returns the pods that Strimzi makes of these objects, with nothing but names and security contexts: the operator of
 * the cluster adds none unless it is told so, and a pool with a template takes nothing from that of its Kafka.
 */
export function strimziPods(objects: readonly KubernetesObject[]): PodTemplate[] {
  const clusters = objects.filter(({ kind }) => kind === 'Kafka');
  const pools = objects.filter(({ kind }) => kind === 'KafkaNodePool');
  return [
    ...pools.map((pool) => podOfPool(pool, clusters)),
    ...clusters.flatMap((cluster) => podsOfOperator(cluster)),
  ];
}

function podOfPool(pool: KubernetesObject, clusters: readonly KubernetesObject[]): PodTemplate {
  const name = pool.metadata.labels?.[CLUSTER];
  const cluster = clusters.find(({ metadata }) => metadata.name === name);
  if (cluster === undefined) throw new Error(`${pool.metadata.name} belongs to no Kafka`);
  const { kafka } = cluster.spec as unknown as KafkaSpec;
  const template = (pool.spec?.template ?? kafka.template ?? {}) as Template;
  const init = kafka.rack ? [container('kafka-init', template.initContainer)] : [];
  return {
    name: `KafkaNodePool ${pool.metadata.name}`,
    template: podTemplate(template, [container('kafka', template.kafkaContainer)], init),
  };
}

function podsOfOperator({ metadata, spec }: KubernetesObject): PodTemplate[] {
  const { entityOperator } = spec as unknown as KafkaSpec;
  if (entityOperator === undefined) return [];
  const { topicOperator, userOperator, template = {} } = entityOperator;
  const containers = [
    ...(topicOperator ? [container('topic-operator', template.topicOperatorContainer)] : []),
    ...(userOperator ? [container('user-operator', template.userOperatorContainer)] : []),
  ];
  return [
    {
      name: `entity operator of Kafka ${metadata.name}`,
      template: podTemplate(template, containers, []),
    },
  ];
}

function podTemplate({ pod }: Template, containers: object[], initContainers: object[]): object {
  return { spec: { securityContext: pod?.securityContext, containers, initContainers } };
}

function container(name: string, template: ContainerTemplate | undefined): object {
  return { name, image: name, securityContext: template?.securityContext };
}
