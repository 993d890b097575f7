import { SERVICES } from '../../tools/local-stack/supervisor/services.ts';
import { type AcceptHere, APP_ID, loadAcceptance } from '../acceptance/accept-here.ts';
import { ROOT, unpackRevision } from '../acceptance/revision.ts';
import { type Compared, compareSlices, type Slice } from '../acceptance/slices.ts';
import { rounded } from '../measure/figures.ts';
import type { Phase } from '../measure/phase.ts';
import { atMost, type Goal, type Table } from '../report/report.ts';
import { defineScenario } from '../scenario.ts';
import { CONNECTIONS, LOAD_OPTIONS, measureSingles, warmUp } from './flows.ts';

/** A slice takes about 20 ms, which is less than most of what else happens on a machine. */
const MESSAGES_OF_A_SLICE = 8 * CONNECTIONS;

export const acceptance = defineScenario({
  summary:
    'what features that a company does not use cost acceptance: in one process, in turn with an earlier revision',
  options: {
    ...LOAD_OPTIONS,
    seconds: { default: 30, meaning: 'seconds of closed loop, for the CPU of a message' },
    baseline: { default: 'd34af4fd', meaning: 'the revision before filters and policies' },
    pairs: { default: 1_000, meaning: 'slices of each of two that are compared' },
  },
  async run(bench, { warmup, endpoints, seconds, baseline, pairs }) {
    const { load } = await bench.openEndpoints({ count: endpoints });
    await warmUp(bench, load, warmup);
    const phase = await measureSingles(bench, load, { seconds });
    await Promise.all(SERVICES.map((name) => bench.stack.stopService(name)));
    const found = await compareAll(bench.log, { baseline, pairs });
    return { phases: [phase], ...reportOf(found, phase) };
  },
});

/** Two ways of acceptance, and whose CPU for a message the second one may add 1 % to; null to see how exact this is. */
interface Comparison {
  name: string;
  one: Slice;
  other: Slice;
  of: 'the gateway' | 'all parts' | null;
}

type Found = (Pick<Comparison, 'name' | 'of'> & Compared)[];

async function compareAll(
  log: (line: string) => void,
  { baseline, pairs }: { baseline: string; pairs: number },
): Promise<Found> {
  const revision = unpackRevision(baseline);
  try {
    const found: Found = [];
    for (const { one, other, ...comparison } of await comparisonsWith(revision.root)) {
      log(`Measuring: ${comparison.name}`);
      found.push({ ...comparison, ...(await compareSlices({ one, other }, { pairs })) });
    }
    return found;
  } finally {
    revision.remove();
  }
}

async function comparisonsWith(baseline: string): Promise<Comparison[]> {
  const [before, now] = [await loadAcceptance(baseline), await loadAcceptance(ROOT)];
  const again = await loadAcceptance(ROOT);
  const [plain, keyed] = [bodyOf({}), bodyOf({ orderingKey: 'order-17' })];
  const other = sliceOf(now, plain);
  return [
    {
      name: 'no filter and no policy, beside the baseline',
      one: sliceOf(before, plain),
      other,
      of: 'the gateway',
    },
    {
      name: 'an ordering key and ordering none, beside no key',
      one: other,
      other: sliceOf(now, keyed),
      of: 'all parts',
    },
    { name: 'the same twice', one: sliceOf(again, plain), other, of: null },
  ];
}

const PAYLOAD = { text: 'x'.repeat(1_013) };

const bodyOf = (fields: object): Buffer =>
  Buffer.from(
    JSON.stringify({ appId: APP_ID, eventType: 'order.placed', ...fields, payload: PAYLOAD }),
  );

/** So many messages at once as the closed loop has under way. */
const sliceOf =
  (accept: AcceptHere, body: Buffer): Slice =>
  async () => {
    for (let n = 0; n < MESSAGES_OF_A_SLICE; n += CONNECTIONS) {
      await Promise.all(Array.from({ length: CONNECTIONS }, () => accept(body)));
    }
  };

function reportOf(found: Found, phase: Phase): { goals: Goal[]; tables: Table[] } {
  const usOf = {
    'the gateway': phase.parts.gateway?.cpuSecondsPer1000 ?? null,
    'all parts': phase.cpuSecondsPer1000,
  };
  const of = (us: number): number => rounded(us / MESSAGES_OF_A_SLICE, 2);
  const percent = (us: number, whole: keyof typeof usOf): number | null => {
    const seconds = usOf[whole];
    return seconds === null ? null : rounded((100 * of(us)) / (1_000 * seconds), 2);
  };
  const rowOf = ({ one, other, more, between }: Compared) => ({
    one: of(one),
    other: of(other),
    more: of(more),
    'in five rounds': between.map(of).join(' to '),
    '% of the gateway': percent(more, 'the gateway'),
    '% of all parts': percent(more, 'all parts'),
  });
  return {
    goals: found.flatMap(({ name, more, of: whole }) =>
      whole === null ? [] : [atMost(`${name}: CPU of ${whole}`, 1, '% more', percent(more, whole))],
    ),
    tables: [
      {
        title: 'CPU of acceptance without HTTP and stores, µs for a message',
        rows: Object.fromEntries(found.map(({ name, ...compared }) => [name, rowOf(compared)])),
        notes: [],
      },
    ],
  };
}
