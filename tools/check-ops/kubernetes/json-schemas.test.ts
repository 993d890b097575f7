import { describe, expect, test } from '@jest/globals';
import { schemasOfCrd, schemasOfKubernetes } from './json-schemas.ts';

const text = { type: 'string' };
const open = {
  type: 'object',
  'x-kubernetes-preserve-unknown-fields': true,
  properties: { a: text },
};

describe('the schemas of Kubernetes', () => {
  const definitions = {
    Pod: {
      type: 'object',
      properties: { spec: { $ref: '#/definitions/PodSpec' } },
      'x-kubernetes-group-version-kind': [
        { group: '', version: 'v1', kind: 'Pod' },
        { group: 'apps', version: 'v1', kind: 'Pod' },
      ],
    },
    PodSpec: {
      type: 'object',
      properties: { labels: { type: 'object', additionalProperties: text } },
    },
    Other: { type: 'object' },
  };
  const schemas = schemasOfKubernetes({ definitions });

  test('are where kubeconform looks: by group, and by version for the core', () => {
    expect([...schemas.keys()]).toEqual(['v1/v1/pod.json', 'apps/v1/pod.json']);
  });

  test('contain the definitions that a kind refers to, and no others', () => {
    const { definitions: held = {} } = schemas.get('v1/v1/pod.json') as { definitions?: object };
    expect(Object.keys(held)).toEqual(['Pod', 'PodSpec']);
  });

  test('refuse unknown fields, but not the names that a user chooses', () => {
    expect(schemas.get('v1/v1/pod.json')).toMatchObject({
      definitions: {
        Pod: { additionalProperties: false },
        PodSpec: {
          additionalProperties: false,
          properties: { labels: { additionalProperties: text } },
        },
      },
    });
  });
});

describe('the schemas of a custom resource', () => {
  const openAPIV3Schema = {
    type: 'object',
    properties: { open, port: { 'x-kubernetes-int-or-string': true } },
  };
  const version = (name: string, served: boolean) => ({
    name,
    served,
    schema: { openAPIV3Schema },
  });
  const schemas = schemasOfCrd({
    spec: {
      group: 'keda.sh',
      names: { kind: 'ScaledObject' },
      versions: [version('v1', true), version('v1beta1', false)],
    },
  });

  test('are those of its served versions', () => {
    expect([...schemas.keys()]).toEqual(['keda.sh/v1/scaledobject.json']);
  });

  test('refuse unknown fields, except where the resource preserves them', () => {
    expect(schemas.get('keda.sh/v1/scaledobject.json')).toEqual({
      type: 'object',
      additionalProperties: false,
      properties: { open, port: { anyOf: [{ type: 'integer' }, { type: 'string' }] } },
    });
  });
});
