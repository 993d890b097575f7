import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { findProgram } from '../machine/required-programs.ts';
import type { StackMode } from '../settings.ts';
import { reasonOf, StackError } from '../stack-error.ts';
import { type Log, logIfSlow, settlesWithin } from '../waiting.ts';

/** A Docker that responds may still be unable to pull images. After this time the stack starts without Docker. */
const PULL_TIMEOUT_MS = 120_000;

export interface DockerProbe {
  /** Returns why Docker cannot be used; undefined if it can. */
  unavailableReason(): string | undefined;
  /** Pulls the images that are missing. Rejects if one cannot be pulled. */
  pullImages(images: readonly string[]): Promise<void>;
}

/** Returns whether the services that have to be started run in containers or as processes of this machine. */
export async function chooseMode(
  mode: StackMode,
  names: readonly BackingName[],
  log: Log,
  probe: DockerProbe = realDocker,
): Promise<'docker' | 'native'> {
  if (mode === 'native' || names.length === 0) return 'native';
  const problem = probe.unavailableReason() ?? (await pullProblem(names, log, probe));
  if (problem === undefined) {
    log(`Using Docker for ${names.join(', ')}`);
    return 'docker';
  }
  if (mode === 'docker') {
    throw new StackError(
      `STACK=docker is not possible: ${problem}. Start Docker, or unset STACK to run without it.`,
    );
  }
  log(`Running ${names.join(', ')} without Docker: ${problem}`);
  return 'native';
}

async function pullProblem(
  names: readonly BackingName[],
  log: Log,
  probe: DockerProbe,
): Promise<string | undefined> {
  const pull = probe.pullImages(names.map((name) => imageOf(name)));
  const isInTime = settlesWithin(pull, PULL_TIMEOUT_MS);
  if (!(await logIfSlow(log, 'Pulling images with Docker …', isInTime))) {
    return `Docker did not pull the images within ${PULL_TIMEOUT_MS / 1_000} s`;
  }
  return pull.then(
    () => undefined,
    (error: unknown) => `Docker cannot pull the images (${reasonOf(error)})`,
  );
}

/** Returns why Docker cannot be used; undefined if it can. */
export function dockerProblem(): string | undefined {
  if (findProgram('docker') === undefined) return 'Docker is not installed';
  // The docker program takes 70 ms and honours contexts; the testcontainers library takes a second to load.
  const version = spawnSync('docker', ['version', '--format', '{{.Server.Version}}'], {
    timeout: 5_000,
  });
  return version.status === 0 ? undefined : 'Docker is installed but its daemon does not respond';
}

const realDocker: DockerProbe = {
  unavailableReason: dockerProblem,
  pullImages: async (images) => {
    const { getContainerRuntimeClient, ImageName } = await import('testcontainers');
    const client = await getContainerRuntimeClient();
    for (const image of images.map((name) => ImageName.fromString(name))) {
      if (!(await client.image.exists(image))) await client.image.pull(image);
    }
  },
};

export type BackingName = 'kafka' | 'mongodb' | 'redis';

const COMPOSE_FILE = join(import.meta.dirname, '../../../docker-compose.yml');

/** Returns the image of a service in docker-compose.yml, which is the only place with image versions. */
export function imageOf(
  name: BackingName,
  composeText = readFileSync(COMPOSE_FILE, 'utf8'),
): string {
  const compose = parse(composeText) as { services?: Record<string, { image?: string }> };
  const image = compose.services?.[name]?.image;
  if (image === undefined) throw new StackError(`docker-compose.yml has no image for ${name}.`);
  return image;
}
