import { describe, expect, it } from '@jest/globals';
import type { KubernetesObject } from './installations.ts';
import { brokenRules } from './linter-rules.ts';

const LABELS = { 'app.kubernetes.io/name': 'a' };
const CONTAINER = {
  name: 'a',
  image: 'a:1.0.0',
  resources: { requests: { cpu: '1', memory: '1Mi' }, limits: { memory: '1Mi' } },
  securityContext: { readOnlyRootFilesystem: true },
};
const ACCOUNT: KubernetesObject = {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: 'a' },
};

function deployment(container: object = {}, pod: object = {}): KubernetesObject {
  const containers = [{ ...CONTAINER, ...container }];
  const template = {
    metadata: { labels: LABELS },
    spec: { serviceAccountName: 'a', containers, ...pod },
  };
  const spec = { selector: { matchLabels: LABELS }, template };
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'a' }, spec };
}

describe('the rules of linters', () => {
  it('find nothing in a good Deployment', () => {
    expect(brokenRules([ACCOUNT, deployment()])).toEqual([]);
  });

  it.each([
    ['latest-tag', { image: 'a' }],
    ['latest-tag', { image: 'registry:5000/a' }],
    ['latest-tag', { image: 'a:latest' }],
    ['duplicate-env-var', { env: [{ name: 'A' }, { name: 'A' }] }],
    ['env-var-secret', { env: [{ name: 'A_PASSWORD', value: 'b' }] }],
    ['no-read-only-root-fs', { securityContext: {} }],
    ['unset-cpu-requirements', { resources: { requests: { memory: '1Mi' } } }],
    ['unset-memory-requirements', { resources: { requests: { cpu: '1' } } }],
    ['probe-port', { readinessProbe: { httpGet: { port: 'ops' } } }],
    ['ssh-port', { ports: [{ name: 'a', containerPort: 22 }] }],
  ])('report %s of %j', (rule, container) => {
    expect(brokenRules([ACCOUNT, deployment(container)])).toContain(`Deployment a: ${rule} in a`);
  });

  it('report what a pod refers to and nothing defines', () => {
    const envFrom = [{ configMapRef: { name: 'b' } }];
    const broken = deployment({ envFrom, volumeMounts: [{ name: 'c' }] });
    expect(brokenRules([broken])).toEqual([
      'Deployment a: no volume c',
      'Deployment a: no ConfigMap b',
      'Deployment a: non-existent-service-account',
    ]);
  });

  it('report a Service without pods', () => {
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'b' },
      spec: { selector: { ...LABELS, more: 'b' } },
    };
    expect(brokenRules([ACCOUNT, deployment(), service])).toEqual(['Service b: dangling']);
  });
});
