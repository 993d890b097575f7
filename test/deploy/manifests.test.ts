import { describe, expect, it, test } from '@jest/globals';
import { parseConfig } from '@posthorn/platform/service/config.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { ADD_PARTITIONS, CREATE_INDEXES, CREATE_TOPICS } from '../../deploy/setup/steps.ts';
import {
  type Container,
  containerOf,
  find,
  type Manifest,
  namesOf,
  readBase,
  renderBase,
  workloads,
} from '../../k8s/read-manifests.ts';
import { copiedFiles } from '../../k8s/write-generated.ts';
import { lettersConfig } from '../../services/admin/src/letters.ts';
import { topicsConfig } from '../../services/admin/src/topic-commands.ts';
import { dispatcherConfig } from '../../services/dispatcher/src/config.ts';
import { gatewayConfig, ingestConfig } from '../../services/gateway/src/config.ts';
import { retryConfig } from '../../services/retry/src/config.ts';

const ROOT = join(import.meta.dirname, '../..');
const SERVICES = {
  gateway: gatewayConfig,
  dispatcher: dispatcherConfig,
  retry: retryConfig,
  ingest: ingestConfig,
};
const SETUP = {
  'create-topics': CREATE_TOPICS.settings,
  'create-indexes': CREATE_INDEXES.settings,
};
/** Suspended CronJobs, from which an operator makes a Job. */
const BY_HAND = {
  'check-topics': topicsConfig,
  'apply-topics': topicsConfig,
  'add-partitions': ADD_PARTITIONS.settings,
};
/** Contents of the Secret `posthorn`. */
const SECRET: Record<string, string> = {
  MONGODB_URL: 'mongodb://mongodb/posthorn?tls=true',
  REDIS_URL: 'rediss://redis',
  ENCRYPTION_KEYS: `k1:${'A'.repeat(43)}=`,
};
/** A service may close this long after its drain: CLOSING_MS in libs/platform/src/service/run-service.ts. */
const CLOSING_MS = 10_000;
/** Settings that no installation on Kubernetes needs to change; all others are where an overlay can change them. */
const LEFT_OUT = /^(OPS_)?(HOST|PORT)$|^EGRESS_ALLOW_LOOPBACK$/;

/** Read by the exporter of traces and not by a service (docs/tracing.md). */
const OF_EXPORTER = new Set(['OTEL_EXPORTER_OTLP_HEADERS']);
const dockerfile = readFileSync(join(ROOT, 'deploy/Dockerfile'), 'utf8');
const performancePage = readFileSync(join(ROOT, 'docs/performance.md'), 'utf8');
/** The folders that it copies completely. */
const copied = [...dockerfile.matchAll(/^COPY ([\w/]+) \1$/gm)].map(([, folder = '']) => folder);
const rendered = renderBase();

describe('k8s/base, its files', () => {
  holdTheRules(readBase());
});

if (rendered) {
  describe('k8s/base, rendered by kubectl', () => {
    holdTheRules(rendered);

    it('names the image of this version', () => {
      const { version } = z
        .object({ version: z.string() })
        .parse(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')));
      const images = workloads(rendered).map((manifest) => containerOf(manifest).image);
      expect(new Set(images)).toEqual(new Set([`posthorn:${version}`]));
    });
  });
} else {
  it.skip('k8s/base, rendered by kubectl: NOT CHECKED, kubectl is not on the PATH', () =>
    undefined);
}

function holdTheRules(manifests: Manifest[]): void {
  it('has four Deployments, two Jobs, and the Jobs that an operator runs by hand', () => {
    expect(namesOf(manifests, 'Deployment')).toEqual(Object.keys(SERVICES).sort());
    expect(namesOf(manifests, 'Job')).toEqual(Object.keys(SETUP).sort());
    expect(namesOf(manifests, 'CronJob')).toEqual(Object.keys(BY_HAND).sort());
  });

  describe.each(Object.keys({ ...SERVICES, ...SETUP, ...BY_HAND }))('pods of %s', (name) => {
    const workload = find(manifests, name);

    it('meet the restricted pod security standard, with a read-only root and no token [security]', () => {
      expect(workload.spec.template.spec).toMatchObject({
        serviceAccountName: `posthorn-${name in SERVICES ? name : 'setup'}`,
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      });
      expect(containerOf(workload)).toMatchObject({
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        resources: { requests: { cpu: anyText, memory: anyText }, limits: { memory: anyText } },
      });
    });

    it('have no user id of their own, so that the cluster may assign one', () => {
      expect(JSON.stringify(workload)).not.toMatch(/runAs(User|Group)|fsGroup/);
    });

    it('run a file that exists and is in the image', () => {
      const { command, image } = containerOf(workload);
      const file = command[1] ?? '';
      expect(command[0]).toBe('node');
      expect(existsSync(join(ROOT, file))).toBe(true);
      expect(copied.some((folder) => file.startsWith(`${folder}/`))).toBe(true);
      expect(image).toMatch(/^posthorn(:|$)/);
    });

    it('have labels that distinguish them from the others', () => {
      const labels = {
        'app.kubernetes.io/name': 'posthorn',
        'app.kubernetes.io/instance': 'posthorn',
        'app.kubernetes.io/component': name,
      };
      expect(workload.metadata.labels).toMatchObject(labels);
      expect(workload.spec.template.metadata.labels).toMatchObject(labels);
    });
  });

  describe.each(Object.entries(SERVICES))('%s', (name, schema) => {
    const workload = find(manifests, name);
    const container = containerOf(workload);
    const env = envOf(manifests, container);
    const config = parseConfig(name, schema, env);

    it('gets every setting that an installation may change, and none that it does not read', () => {
      const unread = Object.keys(env).filter((setting) => !(setting in schema.shape));
      expect(unread.filter((setting) => !OF_EXPORTER.has(setting))).toEqual([]);
      const unset = Object.keys(schema.shape).filter((setting) => !(setting in env));
      expect(unset.filter((setting) => !LEFT_OUT.test(setting))).toEqual([]);
    });

    it('is probed on its management port', () => {
      const { startupProbe, readinessProbe, livenessProbe, ports } = container;
      expect(ports).toContainEqual({ name: 'ops', containerPort: config.OPS_PORT });
      expect(startupProbe.httpGet).toEqual({ path: '/livez', port: 'ops' });
      expect(readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'ops' });
      expect(livenessProbe.httpGet).toEqual({ path: '/livez', port: 'ops' });
      // Longer than a start takes to give up by itself.
      expect(startupProbe.periodSeconds * startupProbe.failureThreshold).toBeGreaterThan(30);
      expect(workload.spec.template.metadata.annotations).toMatchObject({
        'prometheus.io/port': String(config.OPS_PORT),
      });
    });

    it('requests at least the measured memory', () => {
      const { requests, limits } = container.resources;
      expect(mebibytes(requests.memory)).toBeGreaterThanOrEqual(measuredMiB(name));
      expect(mebibytes(limits.memory)).toBeGreaterThanOrEqual(mebibytes(requests.memory));
    });

    it('has time to finish its work when it stops', () => {
      const graceMs = workload.spec.template.spec.terminationGracePeriodSeconds * 1_000;
      const preStopMs = container.lifecycle.preStop.sleep.seconds * 1_000;
      expect(graceMs).toBeGreaterThan(preStopMs + config.DRAIN_TIMEOUT_MS + CLOSING_MS);
      if ('DELIVERY_TIMEOUT_MS' in config) {
        expect(graceMs).toBeGreaterThanOrEqual(config.DELIVERY_TIMEOUT_MS + 15_000);
      }
    });

    it('is replaced and drained pod by pod, and spread over nodes', () => {
      const { matchLabels } = workload.spec.selector;
      expect(matchLabels).toEqual({
        'app.kubernetes.io/name': 'posthorn',
        'app.kubernetes.io/instance': 'posthorn',
        'app.kubernetes.io/component': name,
      });
      expect(workload.spec).toMatchObject({
        strategy: { rollingUpdate: { maxUnavailable: 0 } },
        template: {
          spec: {
            topologySpreadConstraints: [1, 2].map(() => ({ labelSelector: { matchLabels } })),
          },
        },
      });
      expect(find(manifests, name, 'PodDisruptionBudget').spec).toMatchObject({
        maxUnavailable: 1,
        selector: { matchLabels },
      });
    });
  });

  it.each(Object.keys(SETUP))(
    'the Job %s is replaced by GitOps, which cannot change it',
    (name) => {
      const { metadata, spec } = find(manifests, name);
      expect(metadata).toHaveProperty('annotations', {
        'argocd.argoproj.io/hook': 'Sync',
        'argocd.argoproj.io/hook-delete-policy': 'BeforeHookCreation',
        'kustomize.toolkit.fluxcd.io/force': 'enabled',
      });
      // What expires is created again at the next reconciliation, for ever.
      expect(spec).not.toHaveProperty('ttlSecondsAfterFinished');
    },
  );

  it.each(Object.keys(BY_HAND))('the CronJob %s runs only by hand, and once', (name) => {
    expect(find(manifests, name, 'CronJob').spec).toMatchObject({
      suspend: true,
      jobTemplate: { spec: { backoffLimit: 0 } },
    });
  });

  it.each(Object.entries({ ...SETUP, ...BY_HAND }))(
    'the Job %s gets every setting that it reads, and no other',
    (name, schema) => {
      const env = envOf(manifests, containerOf(find(manifests, name)));
      expect(Object.keys(env).sort()).toEqual(Object.keys(schema.shape).sort());
      expect(() => parseConfig(name, schema, env)).not.toThrow();
    },
  );
}

/** The highest resident memory of a service in the table of docs/performance.md#memory, in MiB. */
function measuredMiB(service: string): number {
  const rows = [...performancePage.matchAll(/^\| (.+) \| +(\d+) +\| +(\d+) +\| +(\d+) +\|$/gm)];
  // Ingestion is a gateway without requests.
  const column = { gateway: 2, ingest: 2, dispatcher: 3, retry: 4 }[service];
  const figures = rows.map((row) => Number(row[column ?? NaN]));
  expect(figures.length).toBeGreaterThanOrEqual(8);
  return Math.max(...figures);
}

function mebibytes(quantity = ''): number {
  expect(quantity).toMatch(/^\d+Mi$/);
  return parseInt(quantity, 10);
}

const anyText: unknown = expect.any(String);

/** The environment of a container, with sample values for the Secret. */
function envOf(manifests: Manifest[], { env = [], envFrom }: Container): Record<string, string> {
  const fromMaps = envFrom.map(
    ({ configMapRef }) =>
      manifests.find(
        ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === configMapRef.name,
      )?.data,
  );
  expect(fromMaps).not.toContain(undefined);
  const secrets = env.map(({ name, valueFrom: { secretKeyRef } }) => {
    expect(secretKeyRef.name).toBe('posthorn');
    return [name, SECRET[secretKeyRef.key] ?? ''];
  });
  return Object.assign({}, ...fromMaps, Object.fromEntries(secrets)) as Record<string, string>;
}

const manifests = readBase();
const { env = [], envFrom } = containerOf(find(manifests, 'gateway'));
const maps = envFrom.map(({ configMapRef }) => configMapRef.name);
const set = new Set([
  ...env.map(({ name }) => name),
  ...manifests
    .filter(({ kind, metadata }) => kind === 'ConfigMap' && maps.includes(metadata.name))
    .flatMap(({ data = {} }) => Object.keys(data)),
]);

const missing = (shape: object): string[] => Object.keys(shape).filter((name) => !set.has(name));

test('a gateway pod has the settings of the admin commands that docs/runbook.md runs in it', () => {
  const { mongodb, encryption, publicUrl } = settings;
  const shape = { ...mongodb, ...encryption, ...publicUrl, ...lettersConfig.shape };
  expect(missing(shape)).toEqual([]);
});

test('a gateway pod has not those of the topics commands, which have CronJobs', () => {
  expect(missing(topicsConfig.shape)).toEqual(['TOPIC_PARTITIONS', 'TOPIC_REPLICATION']);
});

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

const [, furtherSettings = ''] = read('docs/tracing.md').split('## Further settings');
const documented = new Set(furtherSettings.match(/OTEL_[A-Z_]+/g));
const inSecret = 'OTEL_EXPORTER_OTLP_HEADERS';

describe('the settings that the exporter of traces reads itself', () => {
  it('may be set in the chart, but for the one that is a secret', () => {
    const allowed = new Set(read('deploy/helm/posthorn/values.schema.json').match(/OTEL_[A-Z_]+/g));
    expect(documented.size).toBeGreaterThan(5);
    expect([...documented].filter((name) => !allowed.has(name))).toEqual([inSecret]);
  });

  it.each(['gateway', 'dispatcher'])(
    'come to the %s from the Secret when they are secret',
    (name) => {
      const { env = [] } = containerOf(find(readBase(), name));
      expect(env.find((each) => each.name === inSecret)?.valueFrom.secretKeyRef).toEqual({
        name: 'posthorn',
        key: inSecret,
        optional: true,
      });
    },
  );
});

/** k8s/base is rendered by Helm: `npm run check:ops -- helm-chart` compares it. */
describe('what is written without Helm', () => {
  it.each([...copiedFiles()])('%s is up to date (node k8s/write-generated.ts)', (path, text) => {
    expect(read(path)).toBe(text);
  });
});

describe('the chart', () => {
  const chart = z.object({ version: z.string(), appVersion: z.string() });
  const settingsSchema = z.object({ properties: z.record(z.string(), z.unknown()) });
  const schema = z.object({ definitions: z.object({ settings: settingsSchema }) });
  const values = z.object({ settings: z.record(z.string(), z.unknown()) });

  it('has the version of the packages', () => {
    const { version } = z.object({ version: z.string() }).parse(JSON.parse(read('package.json')));
    expect(chart.parse(parse(read('deploy/helm/posthorn/Chart.yaml')))).toEqual({
      version,
      appVersion: version,
    });
  });

  it('admits the settings that it passes on, and no others', () => {
    const { definitions } = schema.parse(
      JSON.parse(read('deploy/helm/posthorn/values.schema.json')),
    );
    const admitted = Object.keys(definitions.settings.properties);
    const groups = read('deploy/helm/posthorn/templates/_settings.tpl').matchAll(
      /^[a-z]+: \[(.*)\]$/gm,
    );
    const passed = [...groups].flatMap(([, names = '']) => (names === '' ? [] : names.split(', ')));
    expect(admitted.sort()).toEqual([...passed, 'MEMORY_MIB'].sort());
    const { settings: defaults } = values.parse(parse(read('deploy/helm/posthorn/values.yaml')));
    expect(Object.keys(defaults).filter((name) => !passed.includes(name))).toEqual([]);
  });
});
