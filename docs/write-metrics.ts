import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Registry } from 'prom-client';
import { metricsOfServices } from './metrics-of-services.ts';
import { table } from './table.ts';

const INTRODUCTION = `# Metrics

Each service serves its metrics for Prometheus at \`/metrics\` on its management port (\`OPS_PORT\`). Labels come from closed sets: no
metric names a company, an app, a webhook or anything else that a client chooses, and a process has at most 2,000 series. No label is
on every metric; tell services apart by the labels of your scrape, or join \`posthorn_build_info{component="…"}\`. Node's own
metrics (\`process_*\`, \`nodejs_*\`) are in each service too, and not listed. \`posthorn_canary_*\` and \`posthorn_spans_*\` are there when
settings ask for canary messages and for spans.

\`node docs/write-metrics.ts\` generates this page from the code; a test checks that it is up to date, another one that
running services have exactly these metrics.

## How large is the backlog, and how long will it take?

A record is _ready_ when its time has come and it is not finished
([decision 34](decisions/0034-time-based-backlog.md)). The groups are \`dispatcher\`, \`dispatcher-slow\`, \`retry-park\`,
\`retry-release-short\`, \`retry-release-long\` and \`retry-operator-events\`, each behind \`TOPIC_PREFIX\`; the last one waits for the URL of
the operator, so alerts and scaling leave it out. An endpoint that hangs and retries that are not due
change none of this. **Never alert or scale on \`posthorn_kafka_consumer_lag_records\`**: one record that hangs blocks the commit of everything
that is finished behind it, and records that are parked for ten hours are a lag of ten hours.

Records that are ready, by group and topic. Of a group without members nobody shows them; \`posthorn_kafka_group_members\` shows that:

\`\`\`promql
sum by (group, topic) (posthorn_ready_records)
\`\`\`

The age of the oldest of them, in seconds. Up to a minute is normal while an endpoint does not respond: an attempt waits for up to 30 s
and then takes \`DELIVERY_TIMEOUT_MS\`. Alert above that.

\`\`\`promql
max by (group, topic) (posthorn_oldest_ready_age_seconds)
\`\`\`

**Drain time**: how many seconds of work are ready, which is also how long a record that comes now will wait. Scale and alert on
this one. It is finite while anything is finished.

\`\`\`promql
sum by (group, topic) (posthorn_ready_records)
  / sum by (group, topic) (rate(posthorn_finished_records_total[1m]))
\`\`\`

**Drain time while records keep coming**: when will the backlog be gone, if both rates stay? Look at this one during a recovery. It has no
value while more comes than is finished, and is noise when there is no backlog. It does not fit delay topics, whose records are
not ready when they come.

\`\`\`promql
sum by (topic) (posthorn_ready_records{topic=~".*(message-created|retry-due|slow-lane|delivery-failed)"})
  / (sum by (topic) (rate(posthorn_finished_records_total[1m]))
     - sum by (topic) (rate(posthorn_kafka_produced_records_total[1m])) > 0)
\`\`\`

With 300 s of backlog, arrivals of 500/s and 2,000/s finished, the first says 75 s and the second 100 s. Both need a minute after a
start: until then the rate is that of a shorter time.

Both are too long while a dispatcher without a free place has records for an endpoint that hangs: those wait with the others, and leave at
once when they are deferred. With half of a backlog for such an endpoint, 303 s were predicted and 199 s measured.

When a group changes, its backlog may be counted twice, or by nobody, for up to five seconds.

## Errors of stores

\`posthorn_store_errors_total\` counts what a driver reports as failed, before it is repeated.
\`posthorn_store_operation_duration_seconds\` has it too, with the time until it failed.
`;

/** Returns the text of docs/metrics.md. */
export function metricsText(): string {
  const sections = Object.entries(metricsOfServices()).map(([service, registry]) => {
    const rows = [['Metric', 'Type', 'Labels', 'Meaning'], ...rowsOf(registry)];
    return `## ${service}\n\n${table(rows)}`;
  });
  return [INTRODUCTION, ...sections].join('\n');
}

function rowsOf(registry: Registry): string[][] {
  const own = registry.getMetricsAsArray().filter(({ name }) => name.startsWith('posthorn_'));
  const rows = own.map((metric) => {
    const { name, help, type, labelNames } = metric as unknown as Described;
    const labels = labelNames.map((label) => `\`${label}\``).join(', ');
    return [`\`${name}\``, type, labels, help];
  });
  return rows.sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
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
