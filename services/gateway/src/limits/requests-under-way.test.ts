import { expect, test } from '@jest/globals';
import { createRequestsUnderWay } from './requests-under-way.ts';

function setUp() {
  const underWay = createRequestsUnderWay();
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const request = (
    companyId: string,
    name: string,
    isOver = false,
    linkId?: string,
  ): Promise<string> =>
    underWay.run(
      { companyId, ...(linkId !== undefined && { portal: { linkId } }) },
      () => isOver,
      async () => {
        begun.push(name);
        await new Promise<void>((resolve) => ends.push(resolve));
        return name;
      },
    );
  return { begun, ends, request };
}

const settle = () => new Promise(setImmediate);
const names = Array.from({ length: 17 }, (_, n) => `a${n}`);

test('a company has 16 requests under way, and the next one begins when one ends', async () => {
  const { begun, ends, request } = setUp();
  const answers = names.map((name) => request('comp_a', name));
  await settle();
  expect(begun).toEqual(names.slice(0, 16));
  ends[3]?.();
  expect(await answers[3]).toBe('a3');
  await settle();
  expect(begun).toEqual(names);
});

test('a company does not wait for the requests of another', async () => {
  const { begun, request } = setUp();
  for (const name of names) void request('comp_a', name);
  void request('comp_b', 'b');
  await settle();
  expect(begun).toContain('b');
});

test('a request that is over when its place is free is refused, and its place is used', async () => {
  const { begun, ends, request } = setUp();
  for (const name of names.slice(1)) void request('comp_a', name);
  const over = request('comp_a', 'over', true);
  void request('comp_a', 'last');
  await settle();
  ends[0]?.();
  await expect(over).rejects.toMatchObject({ status: 503 });
  await settle();
  expect(begun).toEqual([...names.slice(1), 'last']);
});

test('a visitor of the portal has 2 requests under way, and leaves room for the platform', async () => {
  const { begun, ends, request } = setUp();
  const [first = '', second = '', ...others] = names.slice(0, 16);
  for (const name of [first, second, ...others]) void request('comp_a', name, false, 'plnk_1');
  void request('comp_a', 'platform');
  void request('comp_a', 'another visitor', false, 'plnk_2');
  await settle();
  expect([...begun].sort()).toEqual([first, second, 'another visitor', 'platform'].sort());
  ends[1]?.();
  await settle();
  expect(begun.at(-1)).toBe(others[0]);
});
