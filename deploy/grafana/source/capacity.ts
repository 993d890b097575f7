import type { Dashboard } from './dashboard.ts';
import { DRAIN_TIME, highestBy, ofProcesses, quantileBy, rateBy, sumBy } from './expressions.ts';

export const CAPACITY: Dashboard = {
  name: 'capacity',
  title: 'Capacity',
  description: 'How full the processes and stores are, and which service needs more of them.',
  rows: [
    {
      title: 'Dispatchers',
      panels: [
        {
          title: 'Places taken',
          description: 'Above 90 % more dispatchers help, unless the CPU is the limit.',
          unit: 'percentunit',
          queries: [
            {
              expr: `${sumBy('instance', 'posthorn_deliveries_in_flight')} / ${sumBy('instance', 'posthorn_delivery_concurrency_limit')}`,
              legend: '{{instance}}',
            },
          ],
        },
        {
          title: 'Attempts per dispatcher',
          unit: 'reqps',
          queries: [
            {
              expr: rateBy('instance', 'posthorn_delivery_attempts_total'),
              legend: '{{instance}}',
            },
          ],
        },
        {
          title: 'Time to drain',
          unit: 's',
          queries: [{ expr: DRAIN_TIME, legend: '{{topic}}' }],
        },
        {
          title: 'Connections',
          description: 'New connections cost a handshake each.',
          unit: 'reqps',
          queries: [
            {
              expr: rateBy('reused', 'posthorn_outbound_connections_total'),
              legend: 'reused: {{reused}}',
            },
          ],
        },
      ],
    },
    {
      title: 'Processes',
      panels: [
        {
          title: 'CPU, in cores',
          description: 'A process uses little more than one core.',
          unit: 'short',
          queries: [
            {
              expr: ofProcesses('rate(process_cpu_seconds_total{SCOPE}[WINDOW])'),
              legend: '{{job}} {{instance}}',
            },
          ],
        },
        {
          title: 'Memory',
          unit: 'bytes',
          queries: [
            {
              expr: ofProcesses('process_resident_memory_bytes{SCOPE}'),
              legend: '{{job}} {{instance}}',
            },
          ],
        },
        {
          title: 'Event loop, 99th percentile',
          description: 'How long a callback waits. Above 0.1 s the process is at its limit.',
          unit: 's',
          queries: [
            {
              expr: ofProcesses('nodejs_eventloop_lag_p99_seconds{SCOPE}'),
              legend: '{{job}} {{instance}}',
            },
          ],
        },
        {
          title: 'Memory budgets',
          description: 'Caches fill up; queues and records should not.',
          unit: 'percentunit',
          queries: [
            {
              expr: 'max by (part) (posthorn_memory_used_bytes{SCOPE} / posthorn_memory_budget_bytes{SCOPE})',
              legend: '{{part}}',
            },
          ],
        },
      ],
    },
    {
      title: 'Stores',
      panels: [
        {
          title: 'Operations',
          unit: 'reqps',
          queries: [
            {
              expr: rateBy('store', 'posthorn_store_operation_duration_seconds_count'),
              legend: '{{store}}',
            },
          ],
        },
        {
          title: 'Time of operations, 95th percentile',
          unit: 's',
          queries: [
            {
              expr: quantileBy(
                0.95,
                'store, operation',
                'posthorn_store_operation_duration_seconds',
              ),
              legend: '{{store}} {{operation}}',
            },
          ],
        },
        {
          title: 'Records written',
          unit: 'reqps',
          queries: [
            { expr: rateBy('topic', 'posthorn_kafka_produced_records_total'), legend: '{{topic}}' },
          ],
        },
        {
          title: 'Stores that answer',
          description: '0 while a store does not answer a process.',
          unit: 'short',
          queries: [
            {
              expr: 'min by (dependency) (posthorn_dependency_up{SCOPE})',
              legend: '{{dependency}}',
            },
          ],
        },
      ],
    },
    {
      title: 'Endpoints',
      panels: [
        {
          title: 'Attempts that one endpoint may have at once',
          unit: 'short',
          queries: [0.05, 0.5, 0.95].map((quantile) => ({
            expr: `histogram_quantile(${quantile}, sum by (le) (posthorn_endpoint_concurrency_limit_bucket{SCOPE}))`,
            legend: `p${quantile * 100}`,
          })),
        },
        {
          title: 'Moved to the slow lane',
          unit: 'reqps',
          queries: [{ expr: rateBy('', 'posthorn_slow_lane_spills_total'), legend: 'attempts' }],
        },
        {
          title: 'Sweep of stuck deliveries',
          description: 'Age of what it has checked: RECONCILE_AFTER and a few minutes.',
          unit: 's',
          queries: [
            { expr: highestBy('', 'posthorn_reconcile_position_age_seconds'), legend: 'position' },
          ],
        },
      ],
    },
  ],
};
