import { afterAll, beforeAll } from '@jest/globals';
import { createResources, type Resources } from '../api/resources.ts';
import { type Receiver, startReceiver } from '../receivers/receiver.ts';
import type { OwnCompany } from './posthorn.ts';
import { joinShared, type SharedName } from './shared-posthorn.ts';

/** Gives the tests of a block a company of its own on the shared Posthorn. Its members are there from `beforeAll` on. */
export function useCompany(name: SharedName): { posthorn: OwnCompany; make: Resources } {
  const posthorn = {} as OwnCompany;
  const make = {} as Resources;
  beforeAll(async () => {
    Object.assign(posthorn, await joinShared(name));
    Object.assign(make, createResources(posthorn.api));
  }, 120_000);
  afterAll(() => posthorn.stop(), 60_000);
  return { posthorn, make };
}

/** Gives the tests of a block an endpoint, as `startReceiver` starts it. */
export function useReceiver(): Receiver {
  const receiver = {} as Receiver;
  beforeAll(async () => {
    Object.assign(receiver, await startReceiver());
  });
  afterAll(() => receiver.close());
  return receiver;
}
