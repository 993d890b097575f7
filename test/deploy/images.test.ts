import { describe, expect, it } from '@jest/globals';
import { cidrs, contains, parseIp } from '@posthorn/domain/egress.ts';
import { globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { commandOf } from '../../deploy/posthorn.ts';

interface Compose {
  services: Record<
    string,
    {
      image?: string;
      command?: string[];
      environment?: Record<string, string>;
      networks?: Record<string, { ipv4_address?: string }>;
      restart?: string;
      healthcheck?: { test?: string[] };
    }
  >;
}

const FILE = join(import.meta.dirname, '../..', 'docker-compose.yml');
const { services } = parse(readFileSync(FILE, 'utf8'), { merge: true }) as Compose;

describe.each(['gateway', 'dispatcher'])(
  'docker-compose.yml lets deliveries of the %s [security]',
  (name) => {
    const settings = services[name]?.environment ?? {};
    /** The default of `${EGRESS_ALLOW_CIDRS:-default}`. */
    const [, ranges = ''] = /:-(.*)\}$/.exec(settings.EGRESS_ALLOW_CIDRS ?? '') ?? [];
    const opened = cidrs(...ranges.split(','));

    it('reach the host of the containers', () => {
      const host = parseIp('172.17.0.1');
      expect(host && opened.some((range) => contains(range, host))).toBe(true);
    });

    it('reach the canary at the address where it listens', () => {
      const url = services.canary?.environment?.CANARY_RECEIVER_URL ?? '';
      const { hostname } = new URL(url);
      expect(services.canary?.networks?.canary?.ipv4_address).toBe(hostname);
      const canary = parseIp(hostname);
      expect(canary && opened.some((range) => contains(range, canary))).toBe(true);
    });

    it('reach no other container, and so none of the stores', () => {
      expect(opened.filter(({ bits, prefixBits }) => prefixBits < bits)).toEqual([]);
      expect(settings).not.toHaveProperty('EGRESS_ALLOW_LOOPBACK');
    });
  },
);

describe('docker-compose.yml', () => {
  const ours = Object.entries(services).filter(([, { image }]) => image === 'posthorn:local');

  it.each(ours)('runs a command that the image has as %s', (_name, { command = [] }) => {
    // The image has a shell, and no other program than its own is in use.
    const run = commandOf(command, (name) => (name === 'sh' ? '/bin/sh' : undefined));
    expect(run.kind).not.toBe('refuse');
  });

  it.each(['gateway', 'dispatcher', 'retry', 'canary', 'prometheus', 'grafana'])(
    'keeps %s running, and checks its health',
    (name) => {
      expect(services[name]?.restart).toBe('unless-stopped');
      expect(services[name]?.healthcheck?.test).toBeDefined();
    },
  );
});

const ROOT = join(import.meta.dirname, '../..');
const dockerfile = readFileSync(join(ROOT, 'deploy/Dockerfile'), 'utf8');

describe('deploy/Dockerfile', () => {
  it('installs the packages of every workspace', () => {
    const workspaces = globSync('{apps/cli,libs/*,services/*}/package.json', { cwd: ROOT });
    expect(workspaces.length).toBeGreaterThan(0);
    expect(workspaces.filter((file) => !dockerfile.includes(`COPY ${file} `))).toEqual([]);
  });

  it('has the entry point on the PATH, with Node as its process', () => {
    expect(dockerfile).toContain('ln -s /app/deploy/posthorn.ts /usr/local/bin/posthorn');
    expect(dockerfile).toMatch(/^COPY deploy\/posthorn\.ts deploy\/$/m);
    expect(dockerfile).toMatch(/^ENTRYPOINT \["posthorn"\]\nCMD \["gateway"\]$/m);
    const ignored = readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n');
    expect(ignored).toContain('!deploy/posthorn.ts');
    expect(statSync(join(ROOT, 'deploy/posthorn.ts')).mode & 0o111).toBe(0o111);
  });

  it('makes the services reachable from outside the container and runs them without root', () => {
    expect(dockerfile).toMatch(/^ENV(.*\\\n)* +HOST=0\.0\.0\.0/m);
    expect(dockerfile).toMatch(/^ENV(.*\\\n)* +OPS_HOST=0\.0\.0\.0/m);
    // A number, with which Kubernetes can verify runAsNonRoot.
    expect(dockerfile).toMatch(/^USER 65532:65532$/m);
  });
});

describe('docker-bake.hcl', () => {
  const bake = readFileSync(join(ROOT, 'docker-bake.hcl'), 'utf8');

  it('builds a release for two architectures, on a base by digest, with an SBOM and its provenance', () => {
    expect(bake).toContain('platforms  = ["linux/amd64", "linux/arm64"]');
    expect(bake).toContain('"node:24-bookworm-slim@${NODE_DIGEST}"');
    expect(bake).toContain('attest = ["type=sbom", "type=provenance,mode=max"]');
  });
});
