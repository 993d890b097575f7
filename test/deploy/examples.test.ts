import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { cidrs, contains, parseIp } from '@posthorn/domain/egress.ts';
import { commandOf } from '../../deploy/posthorn.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

interface Service {
  image?: string;
  build?: { context: string; dockerfile_inline: string };
  command?: string[];
  environment?: Record<string, string>;
  volumes?: string[];
  networks?: Record<string, { ipv4_address?: string }>;
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: object;
}

interface Compose {
  include?: { path: string; env_file: string }[];
  services: Record<string, Service>;
  networks?: object;
  volumes: object;
}

/** test/e2e/deliver/examples.test.ts runs the platform and both receivers. */
describe('examples/compose', () => {
  const folder = 'examples/compose';
  const compose = parse(read(`${folder}/docker-compose.yml`)) as Compose;
  const base = parse(read('docker-compose.yml'), { merge: true }) as Compose;
  const services = Object.entries(compose.services);
  const [included] = compose.include ?? [];

  it('is a part of the compose file of the repository', () => {
    expect(included?.path).toBe('../../docker-compose.yml');
    expect(Object.keys(compose.services).filter((name) => name in base.services)).toEqual([]);
  });

  it('waits for services in states that they reach', () => {
    const all = { ...base.services, ...compose.services };
    for (const [, { depends_on = {} }] of services) {
      for (const [name, { condition }] of Object.entries(depends_on)) {
        expect(Object.keys(all)).toContain(name);
        if (condition === 'service_healthy') expect(all[name]?.healthcheck).toBeDefined();
      }
    }
  });

  it('uses images, networks, volumes and files that are there', () => {
    const images = Object.values(base.services).map(({ image }) => image);
    for (const [, { image, build, networks = {}, volumes = [] }] of services) {
      if (build === undefined) expect([...images, 'node:24-bookworm-slim']).toContain(image);
      else expectBuilt(build);
      expect(Object.keys(base.networks ?? {})).toEqual(
        expect.arrayContaining(Object.keys(networks)),
      );
      for (const [from = ''] of volumes.map((volume) => volume.split(':'))) {
        if (from.startsWith('.')) expect(existsSync(join(ROOT, folder, from))).toBe(true);
        else expect(Object.keys(compose.volumes)).toContain(from);
      }
    }
  });

  /** Every file that is copied is in the context. */
  function expectBuilt({ context, dockerfile_inline }: NonNullable<Service['build']>): void {
    const copied = [...dockerfile_inline.matchAll(/^COPY (\S+)/gm)].map(([, file = '']) => file);
    expect(copied).toEqual(['package.json', 'receiver.mjs']);
    for (const file of copied) expect(existsSync(join(ROOT, folder, context, file))).toBe(true);
  }

  it('runs commands that the image has', () => {
    const { command = [] } = compose.services['create-company'] ?? {};
    expect(command.slice(0, 2)).toEqual(['sh', '-c']);
    const [, ours = ''] = /\|\| posthorn (.+) >/.exec(command[2] ?? '') ?? [];
    expect(commandOf(ours.split(' '), () => undefined).kind).toBe('import');
  });

  it('lets deliveries reach the receiver, and no other container', () => {
    const [, ranges = ''] = /^EGRESS_ALLOW_CIDRS=(.+)$/m.exec(read(`${folder}/.env`)) ?? [];
    expect(included?.env_file).toBe('.env');
    const { hostname } = new URL(compose.services.platform?.environment?.RECEIVER_URL ?? '');
    expect(compose.services.receiver?.networks?.canary?.ipv4_address).toBe(hostname);
    const address = parseIp(hostname);
    const opened = cidrs(ranges);
    expect(address && opened.some((range) => contains(range, address))).toBe(true);
    expect(opened.filter(({ bits, prefixBits }) => prefixBits < bits)).toEqual([]);
  });
});

describe('examples/argocd', () => {
  interface Application {
    kind: string;
    spec: {
      source: {
        chart: string;
        helm: {
          valuesObject: {
            httpRoute: { hostnames: string[]; parentRefs: { namespace: string }[] };
            networkPolicies: { ingressNamespaces: string[] };
            settings: Record<string, string | number>;
          };
        };
      };
    };
  }
  const { kind, spec } = parse(read('examples/argocd/application.yaml')) as Application;

  /** `npm run check:ops -- argocd-example` renders the chart with them. */
  it('has values that the chart knows', () => {
    const chart = parse(read('deploy/helm/posthorn/Chart.yaml')) as { name: string };
    expect([kind, spec.source.chart]).toEqual(['Application', chart.name]);
    const schema = JSON.parse(read('deploy/helm/posthorn/values.schema.json')) as object;
    const ajv = new Ajv({ strict: false });
    const validate = ajv.compile(schema);
    validate(spec.source.helm.valuesObject);
    expect(validate.errors ?? []).toEqual([]);
  });

  it('lets the Gateway in, trusts it, and refuses webhooks to its own host', () => {
    const { httpRoute, networkPolicies, settings } = spec.source.helm.valuesObject;
    expect(networkPolicies.ingressNamespaces).toEqual(
      httpRoute.parentRefs.map(({ namespace }) => namespace),
    );
    expect(settings).toEqual({
      TRUSTED_PROXIES: httpRoute.parentRefs.length,
      PUBLIC_URL: `https://${httpRoute.hostnames.join()}`,
      EGRESS_DENY_HOSTS: httpRoute.hostnames.join(),
    });
  });
});

interface Manifest {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

describe('the examples in languages', () => {
  it('pin what they install, Express as the gateway does', () => {
    const { dependencies } = JSON.parse(read('examples/express/package.json')) as {
      dependencies: Record<string, string>;
    };
    const gateway = JSON.parse(read('services/gateway/package.json')) as Manifest;
    const root = JSON.parse(read('package.json')) as Manifest;
    expect(dependencies).toEqual({
      express: gateway.dependencies?.express,
      standardwebhooks: root.devDependencies?.standardwebhooks,
    });
    for (const line of read('examples/fastapi/requirements.txt').trim().split('\n')) {
      expect(line).toMatch(/^[a-z]+==\d+\.\d+\.\d+$/);
    }
  });
});
