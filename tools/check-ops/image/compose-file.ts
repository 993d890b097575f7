import type { OpsCheck } from '../ops-check.ts';
import { runProgram } from '../programs/run-program.ts';
import { builtProgram, BUILDX, COMPOSE, GO } from '../programs/go-programs.ts';

interface Compose {
  services: Record<string, { restart?: string; healthcheck?: { test?: string[] } }>;
}

interface Bake {
  target: Record<string, { platforms: string[]; args: Record<string, string>; attest: unknown[] }>;
}

const KEPT_RUNNING = ['gateway', 'dispatcher', 'retry', 'canary', 'prometheus', 'grafana'];
const PROFILES = ['--profile', 'app', '--profile', 'canary'];

export const COMPOSE_FILE: OpsCheck = {
  name: 'compose-file',
  shows: 'Compose accepts docker-compose.yml, and buildx the file that builds a release.',
  programs: [GO],
  isQuick: false,
  run: async (progress) => {
    const compose = await builtProgram(COMPOSE, progress);
    const args = ['-f', 'docker-compose.yml', ...PROFILES, 'config', '--format', 'json'];
    const { services } = JSON.parse(await runProgram(compose, args)) as Compose;
    const unwatched = KEPT_RUNNING.filter((name) => {
      const service = services[name];
      return service?.restart !== 'unless-stopped' || !service.healthcheck?.test;
    });
    if (unwatched.length > 0)
      throw new Error(`no restart or health check: ${unwatched.join(', ')}`);
    const platforms = await requireRelease(await builtProgram(BUILDX, progress));
    return `${Object.keys(services).length} services; a release for ${platforms.join(' and ')}`;
  },
};

/** Returns the platforms of a release. Throws unless it names its base by digest and carries an SBOM. */
async function requireRelease(buildx: string): Promise<string[]> {
  const digest = `sha256:${'0'.repeat(64)}`;
  const env = { NODE_DIGEST: digest };
  const bake = JSON.parse(await runProgram(buildx, ['bake', '--print'], { env })) as Bake;
  const posthorn = bake.target.posthorn;
  const base = posthorn?.args.NODE_IMAGE;
  if (base !== `node:24-bookworm-slim@${digest}`) throw new Error(`The base is ${base ?? 'none'}`);
  if (posthorn?.attest.length !== 2) throw new Error('A release has no SBOM or no provenance.');
  return posthorn.platforms;
}
