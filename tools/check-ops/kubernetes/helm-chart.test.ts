import { describe, expect, test } from '@jest/globals';
import type { KubernetesObject } from './installations.ts';
import { differencesBetween } from './helm-chart.ts';

function deployment(replicas: number, name = 'posthorn-retry'): KubernetesObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: { replicas },
  };
}

function job(name: string): KubernetesObject {
  return { apiVersion: 'batch/v1', kind: 'Job', metadata: { name } };
}

describe('the differences between kustomize and the chart', () => {
  test('are none for the same objects, in any order and with the namespace of the overlay', () => {
    const inNamespace = deployment(2);
    inNamespace.metadata.namespace = 'posthorn';
    expect(differencesBetween([inNamespace, job('a')], [job('a'), deployment(2)])).toEqual([]);
  });

  test('name the field, and both values', () => {
    expect(differencesBetween([deployment(2)], [deployment(3)])).toEqual([
      'Deployment posthorn-retry.spec.replicas: 2 of kustomize, 3 of the chart',
    ]);
  });

  test('do not include the order of variables, but their values', () => {
    const withEnv = (...env: object[]): KubernetesObject => ({ ...job('a'), spec: { env } });
    const [a, b] = [
      { name: 'A', value: '1' },
      { name: 'B', value: '2' },
    ];
    expect(differencesBetween([withEnv(a, b)], [withEnv(b, a)])).toEqual([]);
    expect(differencesBetween([withEnv(a, b)], [withEnv(a, { ...b, value: '3' })])).toEqual([
      'Job a.spec.env.B.value: "2" of kustomize, "3" of the chart',
    ]);
  });

  test('name the side that lacks an object', () => {
    expect(differencesBetween([deployment(1, 'a')], [deployment(1, 'b')])).toEqual([
      'Deployment a: only kustomize has it',
      'Deployment b: only the chart has it',
    ]);
  });

  test('do not include the hash at the end of the name of a Job, and of nothing else', () => {
    expect(differencesBetween([job('setup')], [job('setup-0123456789')])).toEqual([]);
    const [one, other] = [deployment(1, 'setup'), deployment(1, 'setup-0123456789')];
    expect(differencesBetween([one], [other])).toHaveLength(2);
  });

  test('exclude annotations for Helm, and include others', () => {
    const annotated = (annotations: Record<string, string>): KubernetesObject => {
      const object = deployment(1);
      return { ...object, metadata: { ...object.metadata, annotations } };
    };
    const kept = annotated({ 'helm.sh/resource-policy': 'keep' });
    expect(differencesBetween([deployment(1)], [kept])).toEqual([]);
    expect(differencesBetween([deployment(1)], [annotated({ other: 'a' })])).toHaveLength(1);
  });
});
