import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Registry } from 'prom-client';
import { metricsOfServices } from './metrics-of-services.ts';
import { table } from './table.ts';

const INTRODUCTION = `# Metrics

Each service serves its metrics for Prometheus at \`/metrics\` on its management port (\`OPS_PORT\`). Labels come from closed sets: no
metric names a company, an app, a webhook or anything else that a client chooses, and a process has at most 2,400 series. Tell
services apart by the labels of your scrape, or join \`posthorn_build_info{component="…"}\`. Node's own metrics (\`process_*\`,
\`nodejs_*\`) are there too. \`posthorn_canary_*\` and \`posthorn_spans_*\` are there when settings ask for canary messages and for spans.

\`node docs/write-metrics.ts\` generates this page from the code; tests check that it is up to date, and that running services have
exactly these metrics.

## The backlog, and how long it takes

A record is _ready_ when its time has come and it is not finished ([decision 34](decisions/0034-time-based-backlog.md)). The groups
are \`dispatcher\`, \`dispatcher-slow\`, \`retry-park\`, \`retry-release-short\`, \`retry-release-long\` and \`retry-operator-events\`, each
behind \`TOPIC_PREFIX\`; alerts and scaling leave out the last one, which waits for the URL of the operator. A group without members
has no backlog here: \`posthorn_kafka_group_members\` shows that.

**Never alert or scale on \`posthorn_kafka_consumer_lag_records\`**: one record that hangs blocks the commit of everything finished
behind it, and records that are parked for ten hours are a lag of ten hours. They change none of the following.

\`\`\`promql
sum by (group, topic) (posthorn_ready_records)             # ready records
max by (group, topic) (posthorn_oldest_ready_age_seconds)  # the age of the oldest
\`\`\`

An age up to a minute is normal while an endpoint does not respond: an attempt waits for up to 30 s and then takes
\`DELIVERY_TIMEOUT_MS\`.

**Drain time**: how many seconds of work are ready, and how long a record that comes now will wait. Scale and alert on this one. It
is finite while anything is finished.

\`\`\`promql
sum by (group, topic) (posthorn_ready_records)
  / sum by (group, topic) (rate(posthorn_finished_records_total[1m]))
\`\`\`

**Drain time while records keep coming**: when the backlog will be gone, if both rates stay; for a recovery. It has no value while
more comes than is finished, is noise without a backlog, and does not fit delay topics, whose records are not ready when they come.

\`\`\`promql
sum by (topic) (posthorn_ready_records{topic=~".*(message-created|retry-due|slow-lane|delivery-failed)"})
  / (sum by (topic) (rate(posthorn_finished_records_total[1m]))
     - sum by (topic) (rate(posthorn_kafka_produced_records_total[1m])) > 0)
\`\`\`

With 300 s of backlog, arrivals of 500/s and 2,000/s finished, the first says 75 s and the second 100 s. Both need a minute after a
start. Both are too long while a full dispatcher has records for an endpoint that hangs, because these leave at once when they are
deferred: with half of a backlog for such an endpoint, 303 s were predicted and 199 s measured. When a group changes, its backlog
may be counted twice, or by nobody, for up to five seconds.

## All metrics

\`posthorn_store_errors_total\` counts failures that a driver reports, before it repeats the operation;
\`posthorn_store_operation_duration_seconds\` has them too, with the time until the failure.
`;

/** Returns the text of docs/metrics.md: a metric that several services have in the same way is one row. */
export function metricsText(): string {
  const services = Object.entries(metricsOfServices());
  const rows = new Map<string, { cells: string[]; servedBy: string[] }>();
  for (const [service, registry] of services) {
    for (const cells of cellsOf(registry)) {
      const key = cells.join();
      rows.set(key, { cells, servedBy: [...(rows.get(key)?.servedBy ?? []), service] });
    }
  }
  const sorted = [...rows.values()].sort(({ cells: a }, { cells: b }) =>
    a.join() < b.join() ? -1 : 1,
  );
  const inAll = (names: readonly string[]): string =>
    names.length === services.length ? 'all' : names.join(', ');
  const body = sorted.map(({ cells: [name = '', type = '', labels = '', help = ''], servedBy }) => [
    name,
    type,
    labels,
    inAll(servedBy),
    help,
  ]);
  return [INTRODUCTION, table([['Metric', 'Type', 'Labels', 'Services', 'Meaning'], ...body])].join(
    '\n',
  );
}

/** Name, type, labels and meaning of each metric of Posthorn. */
function cellsOf(registry: Registry): string[][] {
  const own = registry.getMetricsAsArray().filter(({ name }) => name.startsWith('posthorn_'));
  return own.map((metric) => {
    const { name, help, type, labelNames } = metric as unknown as Described;
    const labels = labelNames.map((label) => `\`${label}\``).join(', ');
    return [`\`${name}\``, type, labels, help];
  });
}

/** The members of a metric that prom-client does not declare for all types. */
interface Described {
  name: string;
  help: string;
  type: string;
  labelNames: readonly string[];
}

if (import.meta.main) {
  writeFileSync(join(import.meta.dirname, 'metrics.md'), metricsText());
}
