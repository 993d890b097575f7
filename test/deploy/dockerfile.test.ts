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
