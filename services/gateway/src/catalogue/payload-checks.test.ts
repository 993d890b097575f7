import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { schemaOf } from './message-policy.ts';
import {
  createPayloadChecks,
  type CheckOutcome,
  type PayloadCheckDeps,
  type PayloadChecks,
} from './payload-checks.ts';

/*
 * The worker thread is a real one. What is slow on purpose would run for minutes, so that a limit of any length shows the
 * same; honest checks have a limit that no machine reaches.
 */
const SHORT_MS = 250;
const LONG_MS = 60_000;

const registry = new Registry();
let logged: object[];
let charged: Map<string, number>;
let open: PayloadChecks[];

beforeEach(() => {
  registry.clear();
  [logged, open] = [[], []];
  charged = new Map<string, number>();
});

afterEach(() => Promise.all(open.map((each) => each.close())));

function openChecks(changes: Partial<PayloadCheckDeps> = {}): PayloadChecks {
  registry.clear();
  const checks = createPayloadChecks({
    registry,
    logger: { warn: (fields: object) => void logged.push(fields), error: () => undefined },
    charge: (companyId, ms) => void charged.set(companyId, (charged.get(companyId) ?? 0) + ms),
    monotonicMs: () => performance.now(),
    limitMs: LONG_MS,
    ...changes,
  });
  open.push(checks);
  return checks;
}

const schema = (value: object, companyId = 'comp_a') =>
  schemaOf(companyId, 'proj_1/order.paid', JSON.stringify(value));

const checkOne = async (
  checks: PayloadChecks,
  value: object,
  { payload = '{}', companyId = 'comp_a' } = {},
): Promise<CheckOutcome | undefined> =>
  (await checks.check(companyId, [{ schema: schema(value, companyId), payload }]))[0];

const VALID = { problems: [] };
const TOO_SLOW = { kind: 'too_slow' };
const NUMBERS = { properties: { n: { type: 'number' } } };

/** Each makes a check last for minutes, or for more memory than there is. */
const doubling = (levels: number): object => ({
  $ref: '#/$defs/level0',
  $defs: Object.fromEntries(
    Array.from({ length: levels }, (_, n) => {
      const next =
        n + 1 === levels ? [{ type: 'object' }] : Array(2).fill({ $ref: `#/$defs/level${n + 1}` });
      return [`level${n}`, { allOf: next }] as const;
    }),
  ),
});
const HOSTILE: [string, object, string][] = [
  [
    'a pattern',
    { properties: { a: { pattern: '^(a+)+$' } } },
    JSON.stringify({ a: `${'a'.repeat(60)}!` }),
  ],
  ['references that double', doubling(60), '{}'],
  [
    'different elements of a list',
    { properties: { list: { uniqueItems: true } } },
    JSON.stringify({ list: Array.from({ length: 100_000 }, (_, n) => [n]) }),
  ],
  [
    'a schema of each element in every level',
    {
      properties: { a: { $ref: '#/$defs/any' } },
      $defs: {
        any: {
          anyOf: Array.from({ length: 4 }, () => ({
            properties: { a: { $ref: '#/$defs/any' } },
            required: ['z'],
          })),
        },
      },
    },
    `${'{"a":'.repeat(60)}1${'}'.repeat(60)}`,
  ],
];

describe('the check of payloads', () => {
  test('returns what became of each, in their order, also of more than one request', async () => {
    const checks = openChecks();
    const payloads = Array.from({ length: 30 }, (_, n) => ({
      schema: schema(NUMBERS),
      payload: JSON.stringify({ n: n % 3 === 0 ? 'text' : n, pad: 'x'.repeat(10_000) }),
    }));
    const outcomes = await checks.check('comp_a', payloads);
    expect(
      outcomes.map((each) => 'problems' in each && each.problems.map(({ path }) => path)),
    ).toEqual(payloads.map((_, n) => (n % 3 === 0 ? ['payload.n'] : [])));
    expect(charged.get('comp_a')).toBeGreaterThan(0);
  });

  test('checks by the schema that is named, also when the worker has dropped others', async () => {
    const checks = openChecks();
    // 40 of them are more than the 16 MiB of parsed schemas.
    const wide = (n: number) => ({ required: [`n${n}`], description: 'x'.repeat(30_000) });
    for (const round of [1, 2]) {
      for (let n = 0; n < 40; n += 1) {
        const outcome = await checkOne(checks, wide(n), { payload: '{"n7": 1}' });
        expect([round, n, outcome && 'problems' in outcome && outcome.problems.length]).toEqual([
          ...[round, n, n === 7 ? 0 : 1],
        ]);
      }
    }
  });

  test('reports a schema that refers to itself without end', async () => {
    const outcome = await checkOne(openChecks(), { $ref: '#' });
    expect(outcome).toEqual({ fault: expect.any(String) });
  });

  test.each(HOSTILE)(
    'ends with the worker for %s, and others are checked [security]',
    async (_what, hostile, payload) => {
      const checks = openChecks({ limitMs: SHORT_MS });
      const slow = checkOne(checks, hostile, { payload });
      // The main thread goes on meanwhile: its timers come.
      const others = ['comp_b', 'comp_c'].map(async (companyId) => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        return checkOne(checks, NUMBERS, { companyId, payload: '{"n": 1}' });
      });
      expect(await slow).toEqual(TOO_SLOW);
      expect(await Promise.all(others)).toEqual([VALID, VALID]);
      expect(logged).toEqual([
        { companyId: 'comp_a', eventTypeId: 'proj_1/order.paid', blocks: null },
      ]);
      expect(charged.get('comp_a')).toBeGreaterThanOrEqual(SHORT_MS);
      expect(await registry.getSingleMetricAsString('posthorn_schema_strikes_total')).toMatch(
        / 1$/m,
      );
    },
  );

  test('finds the slow one of a batch, and checks the others', async () => {
    const [, hostile = {}, payload = ''] = HOSTILE[0] ?? [];
    const checks = openChecks({ limitMs: SHORT_MS });
    const outcomes = await checks.check('comp_a', [
      { schema: schema(NUMBERS), payload: '{"n": 1}' },
      { schema: schema(hostile), payload },
      { schema: schema(NUMBERS), payload: '{"n": "text"}' },
      { schema: schema(hostile), payload: '{"a": "aaa"}' },
    ]);
    expect(outcomes).toEqual([VALID, TOO_SLOW, { problems: [expect.anything()] }, VALID]);
    expect(logged).toHaveLength(1);
  });

  test('does not begin after three strikes of a schema, until that is another one', async () => {
    const [, hostile = {}, payload = ''] = HOSTILE[0] ?? [];
    const checks = openChecks({ limitMs: SHORT_MS });
    for (let n = 0; n < 3; n += 1) await checkOne(checks, hostile, { payload });
    expect(logged).toMatchObject([{ blocks: null }, { blocks: null }, { blocks: 'schema' }]);
    expect(await checkOne(checks, hostile, { payload: '{"a": "aaa"}' })).toEqual(TOO_SLOW);
    const both = await checks.check('comp_a', [
      { schema: schema(hostile), payload: '{}' },
      { schema: schema(NUMBERS), payload: '{}' },
    ]);
    expect(both).toEqual([TOO_SLOW, VALID]);
    expect(await checkOne(checks, { ...hostile, title: 'changed' })).toEqual(VALID);
    expect(logged).toHaveLength(3);
  });

  test('companies take turns', async () => {
    const checks = openChecks();
    const order: string[] = [];
    const note = (companyId: string) =>
      checkOne(checks, NUMBERS, { companyId }).then(() => order.push(companyId));
    const many = Array.from({ length: 200 }, () => note('comp_a'));
    await Promise.all([...many, note('comp_b')]);
    expect(order.indexOf('comp_b')).toBeLessThan(150);
  });

  test('is refused once the process stops, also what is under way', async () => {
    const [, hostile = {}, payload = ''] = HOSTILE[0] ?? [];
    const checks = openChecks();
    const running = checkOne(checks, hostile, { payload });
    const waiting = checkOne(checks, NUMBERS);
    await checks.close();
    await expect(running).rejects.toThrow('stops');
    await expect(waiting).rejects.toThrow('stops');
  });
});
