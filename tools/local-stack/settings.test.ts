import { describe, expect, test } from '@jest/globals';
import { readPort, readSettings, readWay } from './settings.ts';

describe('the settings of the local stack', () => {
  test('are all there without any variable', () => {
    const { way, gatewayPort, opsPort, backingPorts } = readSettings({});
    expect({ way, gatewayPort, opsPort }).toEqual({
      way: undefined,
      gatewayPort: 8080,
      opsPort: 9101,
    });
    expect(backingPorts).toEqual({
      kafka: 19_092,
      kafkaController: 19_093,
      mongodb: 27_117,
      redis: 16_379,
    });
  });

  test.each(['0', '65536', 'abc', '-1', '80.5', ' 80'])('refuse %j as a port', (value) => {
    expect(() => readPort({ PORT: value }, 'PORT', 8080)).toThrow(/^PORT must be a port number/);
  });

  test('take an empty variable as not set', () => {
    expect(readPort({ PORT: '' }, 'PORT', 8080)).toBe(8080);
    expect(readWay({ STACK: '' })).toBeUndefined();
  });

  test('name the variable, its values and the place for an unknown STACK', () => {
    expect(() => readWay({ STACK: 'podman' })).toThrow(
      'STACK must be "docker", "native" or not set, but it is "podman". Change it in the environment of this command.',
    );
  });
});
