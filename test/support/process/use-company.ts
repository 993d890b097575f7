import { beforeAll } from '@jest/globals';
import { createResources, type Resources } from '../api/resources.ts';
import { duringTests } from '../during-tests.ts';
import { type Receiver, startReceiver } from '../receivers/receiver.ts';
import type { OwnCompany } from './posthorn.ts';
import { joinShared, type SharedName } from './shared-posthorn.ts';

/** Gives the tests of a block a company of its own on the shared Posthorn. */
export function useCompany(name: SharedName): { posthorn: OwnCompany; make: Resources } {
  const posthorn = duringTests(
    () => joinShared(name),
    ({ stop }) => stop(),
  );
  const make = {} as Resources;
  beforeAll(() => {
    Object.assign(make, createResources(posthorn.api));
  });
  return { posthorn, make };
}

/** Gives the tests of a block an endpoint, as `startReceiver` starts it. */
export const useReceiver = (): Receiver => duringTests(startReceiver, ({ close }) => close());
