import { DAY_MS, dayNumberOf } from '@posthorn/domain/ids/days.ts';
import { connectMongo } from '@posthorn/platform/mongo/connection/connect.ts';
import type { Goal } from '../../figures/goals.ts';
import type { Percentiles } from '../../figures/percentiles.ts';
import type { Table } from '../../report/report.ts';
import { defineScenario } from '../../scenario.ts';
import { beginDaysAt, fillDays } from './fill-days.ts';
import { fillStats } from './fill-stats.ts';
import { measureReads } from './measure-reads.ts';
import { readsOfPages } from './page-reads.ts';

/** What any page of the dashboard may take (p95), with 50,000,000 deliveries in the store. */
const MOST_MS = 300;

export const history = defineScenario({
  summary: 'how long the reads of the dashboard take with a month of deliveries in the store',
  options: {
    deliveries: { default: 1_000_000, meaning: 'deliveries in the store, spread over the days' },
    days: { default: 29, meaning: 'days that have them; older messages have expired' },
    webhooks: { default: 20, meaning: 'webhooks that got them, of one app' },
    requests: { default: 200, meaning: 'requests of each kind, one after the other' },
  },
  async run(bench, { deliveries, days, webhooks, requests }) {
    const { stack, signal, log } = bench;
    const targets = await bench.openTargets({ count: webhooks, ports: 1 });
    const owner = { ...targets, companyId: stack.credentials.companyId };
    const mongo = await connectMongo(stack.addresses.mongodbUrl, 'posthorn-bench', null, {
      isForLongCommands: true,
    });
    try {
      const firstDay = dayNumberOf(Date.now()) - days;
      await beginDaysAt(mongo.db, firstDay * DAY_MS);
      const deps = { db: mongo.db, owner, signal, log };
      const sampleIds = await fillDays(deps, { firstDay, days, deliveries });
      await fillStats(deps, { firstDay, days, deliveries });
      const reads = readsOfPages(owner, sampleIds);
      const measured = await measureReads(bench, reads, requests);
      return { phases: [], goals: goalsOf(measured), tables: [tableOf(measured, deliveries)] };
    } finally {
      await mongo.close();
    }
  },
});

/** The 99th percentile: it is not below the 95th. */
function goalsOf(measured: readonly [string, Percentiles][]): Goal[] {
  return measured.map(([name, { p99 }]) => {
    return { name: `${name}: p99`, unit: 'ms', atMost: MOST_MS, measured: p99 };
  });
}

function tableOf(measured: readonly [string, Percentiles][], deliveries: number): Table {
  const rows = measured.map(([name, { p50, p90, p99, max }]) => {
    return [name, { p50, p90, p99, max }] as const;
  });
  return {
    title: `Reads with ${deliveries} deliveries in the store, in ms`,
    rows: Object.fromEntries(rows),
    notes: ['From the request to the last byte of its response, one request at a time.'],
  };
}
