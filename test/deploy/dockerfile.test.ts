import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const ROOT = join(import.meta.dirname, '../..');
const dockerfile = readFileSync(join(ROOT, 'deploy/Dockerfile'), 'utf8');

describe('deploy/Dockerfile', () => {
  it('installs the packages of every workspace', () => {
    const workspaces = globSync('{libs,services}/*/package.json', { cwd: ROOT });
    expect(workspaces.length).toBeGreaterThan(0);
    expect(workspaces.filter((file) => !dockerfile.includes(`COPY ${file} `))).toEqual([]);
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
