import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  count,
  createQueueHarness,
  type Entered,
  type QueueHarness,
} from '../../../../test/support/isolation/queue-harness.ts';
import type { AttemptReport } from './gate.ts';

const IDS = ['a', 'b', 'c', 'd'] as const;
const LIMITS = { perEndpoint: { floor: 1, start: 4, ceiling: 8 }, fast: 6, slow: 3 };

/** What a payload counts for that is not loaded yet. */
const PAYLOAD_BYTES = 65_536;

const id = fc.constantFrom(...IDS);
const result = fc.constantFrom<Partial<AttemptReport> | null>(
  null,
  {},
  {},
  { outcome: 'timeout', statusCode: null },
  { outcome: 'http_5xx', statusCode: 500 },
  { outcome: 'http_429', statusCode: 429, retryAfterMs: 3_000 },
  { outcome: 'http_429', statusCode: 429, retryAfterMs: 90_000 },
);
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('enter'),
      id,
      queue: fc.constantFrom('first', 'retry', 'slow'),
      times: fc.integer({ min: 1, max: 12 }),
      rate: fc.constantFrom(null, null, 0.5, 20),
      isLarge: fc.boolean(),
      hasPayload: fc.boolean(),
      url: fc.constantFrom('https://one.example/', 'https://two.example/'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('finish'), nth: fc.nat(20), result }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('pass'), ms: fc.constantFrom(1, 60, 700, 31_000) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('circuit'),
      id,
      now: fc.constantFrom('closed', 'open', 'probing'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('memory'), ms: fc.constantFrom(1_000, 30_000) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('inherit'), id, ms: fc.nat(40_000) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface Run {
  harness: QueueHarness;
  all: Entered[];
  over: Set<Entered>;
}

const underWay = ({ all, over }: Run): Entered[] =>
  all.filter((each) => each.slot && !over.has(each));

async function finish(
  run: Run,
  entered: Entered[],
  report: Partial<AttemptReport> | null,
): Promise<void> {
  for (const each of entered) run.over.add(each);
  await run.harness.finish(entered, report);
  // An attempt that did not begin frees its slot, as in make-request.ts.
  const unmade = underWay(run).filter(({ hasBegun }) => hasBegun === false);
  if (unmade.length > 0) await finish(run, unmade, null);
}

async function apply(run: Run, next: Step): Promise<void> {
  const { harness } = run;
  switch (next.kind) {
    case 'enter': {
      const companyId = next.isLarge ? 'large' : next.id;
      const hasPayload = (): boolean => next.hasPayload;
      const as = { rateLimitPerSecond: next.rate, companyId, url: next.url, hasPayload };
      run.all.push(...(await harness.enter(next.id, next.queue, next.times, as)));
      return;
    }
    case 'finish': {
      const open = underWay(run);
      return finish(run, open.slice(next.nth % Math.max(1, open.length)).slice(0, 1), next.result);
    }
    case 'pass':
      return harness.pass(next.ms);
    case 'circuit':
      harness.circuits.set(
        next.id,
        {
          closed: { kind: 'closed' } as const,
          open: { kind: 'open', deferForMs: 60_000 } as const,
          probing: { kind: 'probing', sinceMs: 0, deferForMs: 60_000 } as const,
        }[next.now],
      );
      return;
    case 'memory':
      harness.maxWait.ms = next.ms;
      return;
    case 'inherit':
      return harness.inheritPauses([next.id], next.ms);
  }
}

/** Compares what the queues report with what has happened. */
function expectTrue(run: Run): void {
  const { queues, unreported } = run.harness;
  const open = underWay(run);
  const begun = open.filter(({ hasBegun }) => hasBegun);
  expect(queues.running()).toBe(begun.length);
  expect(unreported()).toBe(open.length);
  expect(queues.waiting()).toBe(count(run.all).waiting);
  const loading = open.filter(({ candidate }) => !candidate.hasPayload());
  expect(run.harness.payloads.usedBytes()).toBe(loading.length * PAYLOAD_BYTES);
  const slow = open.filter(({ candidate }) => candidate.queue === 'slow');
  expect(slow.length).toBeLessThanOrEqual(LIMITS.slow);
  expect(open.length - slow.length).toBeLessThanOrEqual(LIMITS.fast);
  for (const endpoint of queues.endpoints().values()) {
    const own = open.filter(({ candidate }) => candidate.webhookId === endpoint.webhookId);
    const of = (queue: string): number =>
      own.filter(({ candidate }) => candidate.queue === queue).length;
    const counted = { first: of('first'), retry: of('retry'), slow: of('slow') };
    expect(endpoint.running).toEqual(counted);
    expect(endpoint.overdue).toBeGreaterThanOrEqual(0);
    expect(endpoint.overdue).toBeLessThanOrEqual(own.length);
    expect(own.length).toBeLessThanOrEqual(LIMITS.perEndpoint.ceiling);
  }
}

/** Ends all attempts under way, until none follows. */
async function drain(run: Run): Promise<void> {
  run.harness.circuits.clear();
  for (
    let round = 0;
    round < 400 && count(run.all).waiting + underWay(run).length > 0;
    round += 1
  ) {
    await finish(run, underWay(run), {});
    await run.harness.pass(500);
  }
}

const anySteps = fc.array(step, { maxLength: 40 });
const newRun = (): Run => ({
  harness: createQueueHarness({ limits: LIMITS }),
  all: [],
  over: new Set(),
});

describe('the queues, for any sequence of steps', () => {
  it('keep all counts right and all bounds', async () => {
    await fc.assert(
      fc.asyncProperty(anySteps, async (steps) => {
        const run = newRun();
        for (const next of steps) {
          await apply(run, next);
          expectTrue(run);
        }
      }),
      { numRuns: 30 },
    );
  });

  it('admit every attempt once all slots are freed and time passes, and leave nothing behind', async () => {
    await fc.assert(
      fc.asyncProperty(anySteps, async (steps) => {
        const run = newRun();
        for (const next of steps) await apply(run, next);
        await drain(run);
        expect(count(run.all).waiting).toBe(0);
        expectTrue(run);
        run.harness.time.jump(160_000);
        await run.harness.pass(100);
        expect([run.harness.queues.endpoints().size, run.harness.time.size()]).toEqual([0, 0]);
        expect(run.harness.payloads.usedBytes()).toBe(0);
      }),
      { numRuns: 30 },
    );
  });

  it('admit every attempt at once at a stop', async () => {
    await fc.assert(
      fc.asyncProperty(anySteps, async (steps) => {
        const run = newRun();
        for (const next of steps) await apply(run, next);
        run.harness.queues.close();
        await run.harness.pass(0);
        expect(count(run.all).waiting).toBe(0);
        await finish(run, underWay(run), {});
        expectTrue(run);
        expect([run.harness.unreported(), run.harness.time.size()]).toEqual([0, 0]);
      }),
      { numRuns: 30 },
    );
  });
});
