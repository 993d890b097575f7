import { spawnSync } from 'node:child_process';
import { findProgram } from '../machine/on-path.ts';
import type { StackWay } from '../settings.ts';
import { reasonOf, StackError } from '../stack-error.ts';
import { type Log, narrate, settlesWithin } from '../waiting.ts';
import { type BackingName, imageOf } from './images.ts';

/** Docker may answer and still be unable to pull: after this long the stack goes on natively. */
const PULL_TIMEOUT_MS = 120_000;

export interface DockerProbe {
  /** undefined when Docker answers, else why it is not used. */
  whyNotAnswering(): string | undefined;
  /** Rejects when an image cannot be provided. */
  provideImages(images: readonly string[]): Promise<void>;
}

/** Containers or processes of this machine, for the services that need starting. */
export async function chooseWay(
  way: StackWay,
  names: readonly BackingName[],
  log: Log,
  probe: DockerProbe = realDocker,
): Promise<'docker' | 'native'> {
  if (way === 'native' || names.length === 0) return 'native';
  const problem = probe.whyNotAnswering() ?? (await whyNoImages(names, log, probe));
  if (problem === undefined) {
    log(`Using Docker for ${names.join(', ')}`);
    return 'docker';
  }
  if (way === 'docker') {
    throw new StackError(
      `STACK=docker is not possible: ${problem}. Start Docker, or unset STACK to run natively.`,
    );
  }
  log(`Running ${names.join(', ')} natively: ${problem}`);
  return 'native';
}

async function whyNoImages(
  names: readonly BackingName[],
  log: Log,
  probe: DockerProbe,
): Promise<string | undefined> {
  const pull = probe.provideImages(names.map((name) => imageOf(name)));
  const bounded = settlesWithin(pull, PULL_TIMEOUT_MS);
  if (!(await narrate(log, 'Pulling images with Docker', bounded))) {
    return `Docker did not provide the images within ${PULL_TIMEOUT_MS / 1_000} s`;
  }
  return pull.then(
    () => undefined,
    (error: unknown) => `Docker cannot provide the images (${reasonOf(error)})`,
  );
}

const realDocker: DockerProbe = {
  // The program costs 70 ms and knows contexts; the library behind the containers takes a second to load.
  whyNotAnswering: () => {
    if (findProgram('docker') === undefined) return 'Docker is not installed';
    const asked = spawnSync('docker', ['version', '--format', '{{.Server.Version}}'], {
      timeout: 5_000,
    });
    return asked.status === 0 ? undefined : 'Docker is installed but does not answer';
  },
  provideImages: async (images) => {
    const { getContainerRuntimeClient, ImageName } = await import('testcontainers');
    const client = await getContainerRuntimeClient();
    for (const image of images.map((name) => ImageName.fromString(name))) {
      if (!(await client.image.exists(image))) await client.image.pull(image);
    }
  },
};
