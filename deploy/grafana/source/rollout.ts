import type { Dashboard } from './dashboard.ts';
import {
  highestBy,
  ofProcesses,
  orZero,
  quantileBy,
  rateBy,
  sumBy,
  totalRate,
} from './expressions.ts';

const MESSAGES = 'method="POST", route=~".*/webhook-messages"';

export const ROLLOUT: Dashboard = {
  name: 'rollout',
  title: 'Rollout',
  description: 'What a rollout does: versions, restarts, and whether messages notice.',
  rows: [
    {
      title: 'Processes',
      panels: [
        {
          title: 'Versions',
          unit: 'short',
          queries: [
            {
              expr: 'count by (job, version) (posthorn_build_info{SCOPE})',
              legend: '{{job}} {{version}}',
            },
          ],
        },
        {
          title: 'Time since the start',
          unit: 's',
          queries: [
            {
              expr: ofProcesses('time() - process_start_time_seconds{SCOPE}'),
              legend: '{{job}} {{instance}}',
            },
          ],
        },
        {
          title: 'Joins of consumer groups',
          description: 'Each change of a group is one join of every member.',
          unit: 'short',
          queries: [
            {
              expr: 'sum by (job) (increase(posthorn_kafka_rebalances_total{SCOPE}[WINDOW]))',
              legend: '{{job}}',
            },
          ],
        },
        {
          title: 'Consumers replaced, commits failed',
          unit: 'short',
          queries: [
            {
              expr: 'sum(increase(posthorn_kafka_consumer_restarts_total{SCOPE}[WINDOW]))',
              legend: 'replaced',
            },
            {
              expr: 'sum(increase(posthorn_kafka_commit_failures_total{SCOPE}[WINDOW]))',
              legend: 'commits',
            },
          ],
        },
      ],
    },
    {
      title: 'What messages notice',
      panels: [
        {
          title: 'Responses with 5xx',
          unit: 'reqps',
          queries: [
            {
              expr: orZero(
                rateBy('code', 'posthorn_http_requests_total', `${MESSAGES}, code=~"5.."`),
              ),
              legend: '{{code}}',
            },
          ],
        },
        {
          title: 'Due to begun, first attempts',
          unit: 's',
          queries: [0.5, 0.99].map((quantile) => ({
            expr: quantileBy(quantile, '', 'posthorn_delivery_lag_seconds', 'stage="first"'),
            legend: `p${quantile * 100}`,
          })),
        },
        {
          title: 'Age of the oldest ready record',
          unit: 's',
          queries: [
            { expr: highestBy('topic', 'posthorn_oldest_ready_age_seconds'), legend: '{{topic}}' },
          ],
        },
        {
          title: 'Members of groups',
          description: 'A group with 0 is read by nobody.',
          unit: 'short',
          queries: [{ expr: sumBy('group', 'posthorn_kafka_group_members'), legend: '{{group}}' }],
        },
      ],
    },
    {
      title: 'What must not happen',
      panels: [
        {
          title: 'Dead letters',
          description: 'Unreadable records during a rollback were written by the newer version.',
          unit: 'reqps',
          queries: [
            {
              expr: orZero(rateBy('reason', 'posthorn_dead_letter_records_total')),
              legend: '{{reason}}',
            },
          ],
        },
        {
          title: 'Failing steps',
          unit: 'short',
          queries: [
            { expr: orZero(highestBy('step', 'posthorn_failing_steps')), legend: '{{step}}' },
          ],
        },
        {
          title: 'Missing topics',
          unit: 'short',
          queries: [{ expr: sumBy('', 'posthorn_kafka_topic_missing'), legend: 'topics' }],
        },
        {
          title: 'Published for gateways that ended',
          unit: 'reqps',
          queries: [{ expr: totalRate('posthorn_swept_records_total'), legend: 'records' }],
        },
      ],
    },
  ],
};
