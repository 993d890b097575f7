import { describe, expect, test } from '@jest/globals';
import type { KubernetesObject } from './rendered.ts';
import { strimziPods } from './strimzi-pods.ts';

const context = (runAsUser: number): { securityContext: object } => ({
  securityContext: { runAsUser },
});

function kafka(spec: object): KubernetesObject {
  const kind = { apiVersion: 'kafka.strimzi.io/v1', kind: 'Kafka' };
  return { ...kind, metadata: { name: 'k' }, spec: { kafka: {}, ...spec } };
}

function pool(spec: object, cluster = 'k'): KubernetesObject {
  const metadata = { name: 'p', labels: { 'strimzi.io/cluster': cluster } };
  return { apiVersion: 'kafka.strimzi.io/v1', kind: 'KafkaNodePool', metadata, spec: { ...spec } };
}

describe('the pods that Strimzi makes', () => {
  test('have the contexts of the template of their pool, and nothing of that of Kafka', () => {
    const ofKafka = { kafka: { template: { pod: context(1), kafkaContainer: context(2) } } };
    const ofPool = { template: { pod: context(3) } };
    expect(strimziPods([kafka(ofKafka), pool(ofPool)])).toEqual([
      {
        name: 'KafkaNodePool p',
        template: {
          spec: {
            ...context(3),
            containers: [{ name: 'kafka', image: 'kafka', securityContext: undefined }],
            initContainers: [],
          },
        },
      },
    ]);
  });

  test('have those of Kafka when their pool has no template', () => {
    const template = { pod: context(1), kafkaContainer: context(2) };
    expect(strimziPods([kafka({ kafka: { template } }), pool({})])).toMatchObject([
      { template: { spec: { ...context(1), containers: [context(2)] } } },
    ]);
  });

  test('have an init container when Kafka knows racks', () => {
    const template = { initContainer: context(4) };
    const pods = strimziPods([kafka({ kafka: { rack: {} } }), pool({ template })]);
    expect(pods).toMatchObject([{ template: { spec: { initContainers: [context(4)] } } }]);
  });

  test('include the operator of users and topics, with the containers that run', () => {
    const template = { pod: context(1), userOperatorContainer: context(5) };
    expect(strimziPods([kafka({ entityOperator: { userOperator: {}, template } })])).toMatchObject([
      { template: { spec: { ...context(1), containers: [context(5)] } } },
    ]);
    expect(strimziPods([kafka({})])).toEqual([]);
  });

  test('are not guessed for a pool without its Kafka', () => {
    expect(() => strimziPods([kafka({}), pool({}, 'other')])).toThrow('p belongs to no Kafka');
  });
});
