import { afterAll, beforeAll } from '@jest/globals';

/** Opens something for the tests of a block and closes it after them. Its members are there from `beforeAll` on. */
export function duringTests<Thing extends object>(
  open: () => Promise<Thing>,
  close: (thing: Thing) => unknown,
): Thing {
  const thing = {} as Thing;
  beforeAll(async () => {
    Object.assign(thing, await open());
  }, 120_000);
  afterAll(async () => {
    await close(thing);
  }, 60_000);
  return thing;
}
