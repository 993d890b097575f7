import { type Goal, partRows, spendingNotes, type Table } from '../../report/report.ts';
import { type Bench, defineScenario, type ScenarioResult } from '../../scenario.ts';
import type { Owner } from '../../load/failed-deliveries.ts';
import { openStores } from '../../stack/open-stores.ts';
import { followReleases, type LatenessRun, measureLateness } from './lateness.ts';
import { measureParked, type ParkedRun } from './parked.ts';

export const retry = defineScenario({
  summary:
    'lateness of retries after 5 s; memory and idle CPU with a million records parked for 10 h',
  options: {
    warmup: { default: 30, meaning: 'seconds of the same load before the measurement' },
    seconds: { default: 60, meaning: 'seconds of failures whose retries are measured' },
    rate: { default: 2_000, meaning: 'failures per second, and due retries per second 5 s later' },
    webhooks: { default: 300, meaning: 'webhooks whose deliveries fail' },
    parked: { default: 1_000_000, meaning: 'records parked on the longest delay topic' },
    rest: { default: 60, meaning: 'seconds to watch the service without and with them' },
  },
  async run(bench, { webhooks, parked, rest, ...load }) {
    // Attempts at the released records would be measured as well; the bench reads those records instead.
    await bench.stack.stopService('dispatcher');
    const owner = await createOwner(bench, webhooks);
    const stores = await openStores(bench.stack.addresses);
    const releases = await followReleases(stores);
    try {
      const { tracker } = releases;
      const lateness = await measureLateness(bench, stores, tracker, { owner, ...load });
      tracker.forgetAll();
      const waiting = await measureParked(bench, stores, tracker, { owner, parked, rest });
      return outcomeOf(lateness, waiting, parked);
    } finally {
      await releases.close();
      await stores.close();
    }
  },
});

/** Unused: the stopped dispatcher sends nothing there. */
const UNUSED_ADDRESS = 'http://127.0.0.1:9';

async function createOwner({ client, stack }: Bench, webhooks: number): Promise<Owner> {
  const appId = await client.createApp();
  const urls = Array.from({ length: webhooks }, (_, n) => `${UNUSED_ADDRESS}/${n}`);
  const webhookIds = await client.createWebhooks(appId, urls);
  return { companyId: stack.credentials.companyId, appId, webhookIds };
}

function outcomeOf(lateness: LatenessRun, waiting: ParkedRun, parked: number): ScenarioResult {
  const { timeline, missing, early } = lateness.figures;
  const usage = Object.entries(lateness.spending.usage).map(([part, seconds]) => ({
    part,
    seconds,
  }));
  const isKept = waiting.stillParked === parked && waiting.released === 0;
  return {
    phases: [],
    goals: goalsOf(lateness, waiting, parked),
    tables: [...latenessTables(lateness), parkedTable(waiting)],
    extra: { lateness: timeline, usage, parked: waiting.samples },
    isComplete: missing === 0 && early === 0 && isKept,
  };
}

function goalsOf(
  { name, figures }: LatenessRun,
  { stillParked, released, ...waiting }: ParkedRun,
  parked: number,
): Goal[] {
  const p99 = figures.receivedAfterMs.p99;
  const none = (what: string, measured: number): Goal => ({
    name: what,
    unit: '',
    atMost: 0,
    measured,
  });
  return [
    { name: `${name}: received after due, p99`, unit: 'ms', atMost: 250, measured: p99 },
    none('released before they were due', figures.early),
    none('due and not released', figures.missing),
    { name: `${waiting.name}: still parked`, unit: '', atLeast: parked, measured: stillParked },
    none(`${waiting.name}: released`, released),
  ];
}

function latenessTables({ name, figures, spending }: LatenessRun): Table[] {
  return [
    {
      title: name,
      rows: {
        'received after due, ms': figures.receivedAfterMs,
        'released after due, ms': figures.releasedAfterMs,
        'read after release, ms': figures.readingMs,
        'failure stored after its end, ms': figures.storedAfterMs,
      },
      notes: [countsOf(figures)],
    },
    { title: `${name}: CPU and memory`, rows: partRows(spending), notes: spendingNotes(spending) },
  ];
}

function countsOf({ due, missing, duplicates, early }: LatenessRun['figures']): string {
  return `due ${due}, early ${early}, missing ${missing}, duplicates ${duplicates}`;
}

function parkedTable({ name, cpuPercent, memory, ...run }: ParkedRun): Table {
  return {
    title: `${name}: the retry service`,
    rows: {
      'resident memory, MiB': memory.residentMiB,
      'heap used, MiB': memory.heapUsedMiB,
      timers: memory.timers,
      'CPU when idle, % of a core': cpuPercent,
    },
    notes: [
      `parked in ${run.parkSeconds} s, still parked ${run.stillParked}, released ${run.released}`,
    ],
  };
}
