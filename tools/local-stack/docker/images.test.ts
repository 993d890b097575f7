import { expect, test } from '@jest/globals';
import { imageOf } from './images.ts';

test.each(['kafka', 'mongodb', 'redis'] as const)(
  'docker-compose.yml has an image with a version for %s',
  (name) => {
    expect(imageOf(name)).toMatch(/^[a-z/]+:\d+(\.\d+)*(-[a-z]+)?$/);
  },
);

test('a compose file without the service is an error that names the service', () => {
  expect(() => imageOf('kafka', 'services: {}')).toThrow('has no image for kafka');
});
