import { describe, expect, test } from '@jest/globals';
import { chooseMode, type DockerProbe, imageOf } from './choose-mode.ts';

const available: DockerProbe = {
  unavailableReason: () => undefined,
  pullImages: () => Promise.resolve(),
};
const unavailable: DockerProbe = {
  ...available,
  unavailableReason: () => 'Docker is not installed',
};
const unableToPull: DockerProbe = {
  ...available,
  pullImages: () => Promise.reject(new Error('no route to the registry')),
};

async function choose(mode: 'docker' | 'native' | undefined, probe: DockerProbe) {
  const logged: string[] = [];
  const chosen = await chooseMode(mode, ['kafka', 'redis'], (line) => logged.push(line), probe);
  return { chosen, logged };
}

describe('the mode of the backing services', () => {
  test('is docker if Docker can pull the images', async () => {
    expect(await choose(undefined, available)).toEqual({
      chosen: 'docker',
      logged: ['Using Docker for kafka, redis'],
    });
  });

  test.each([
    [unavailable, 'Docker is not installed'],
    [unableToPull, 'Docker cannot pull the images (no route to the registry)'],
  ])('is native otherwise, and the reason is logged', async (probe, reason) => {
    expect(await choose(undefined, probe)).toEqual({
      chosen: 'native',
      logged: [`Running kafka, redis without Docker: ${reason}`],
    });
  });

  test('is an error when STACK=docker is set and Docker cannot be used', async () => {
    await expect(choose('docker', unavailable)).rejects.toThrow(
      'STACK=docker is not possible: Docker is not installed.',
    );
  });

  test('is native when STACK=native is set, without a call of Docker', async () => {
    expect(await choose('native', available)).toEqual({ chosen: 'native', logged: [] });
  });
});

test.each(['kafka', 'mongodb', 'redis'] as const)(
  'docker-compose.yml has an image with a version for %s',
  (name) => {
    expect(imageOf(name)).toMatch(/^[a-z/]+:\d+(\.\d+)*(-[a-z]+)?$/);
  },
);

test('a compose file without the service is an error that names the service', () => {
  expect(() => imageOf('kafka', 'services: {}')).toThrow('has no image for kafka');
});
