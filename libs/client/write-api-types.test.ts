import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { API_TYPES_FILE, createApiTypes } from './write-api-types.ts';

it('has the types of the API as `node libs/client/write-api-types.ts` writes them', async () => {
  expect(readFileSync(API_TYPES_FILE, 'utf8')).toBe(await createApiTypes());
});
