import { describe, expect, test } from '@jest/globals';
import { chooseWay, type DockerProbe } from './choose-way.ts';

const answering: DockerProbe = {
  whyNotAnswering: () => undefined,
  provideImages: () => Promise.resolve(),
};
const silent: DockerProbe = { ...answering, whyNotAnswering: () => 'Docker is not installed' };
const unableToPull: DockerProbe = {
  ...answering,
  provideImages: () => Promise.reject(new Error('no route to the registry')),
};

async function choose(way: 'docker' | 'native' | undefined, probe: DockerProbe) {
  const said: string[] = [];
  const chosen = await chooseWay(way, ['kafka', 'redis'], (line) => said.push(line), probe);
  return { chosen, said };
}

describe('the way to run the backing services', () => {
  test('is Docker where it can provide the images', async () => {
    expect(await choose(undefined, answering)).toEqual({
      chosen: 'docker',
      said: ['Using Docker for kafka, redis'],
    });
  });

  test.each([
    [silent, 'Docker is not installed'],
    [unableToPull, 'Docker cannot provide the images (no route to the registry)'],
  ])('is native otherwise, and the reason is said', async (probe, reason) => {
    expect(await choose(undefined, probe)).toEqual({
      chosen: 'native',
      said: [`Running kafka, redis natively: ${reason}`],
    });
  });

  test('is an error when Docker was asked for and is not usable', async () => {
    await expect(choose('docker', silent)).rejects.toThrow(
      'STACK=docker is not possible: Docker is not installed.',
    );
  });

  test('is native without asking Docker when that was asked for', async () => {
    expect(await choose('native', answering)).toEqual({ chosen: 'native', said: [] });
  });
});
