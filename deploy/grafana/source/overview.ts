import type { Dashboard } from './dashboard.ts';
import {
  DRAIN_TIME,
  highestBy,
  orZero,
  quantileBy,
  rateBy,
  sumBy,
  totalRate,
} from './expressions.ts';

const MESSAGES = 'method="POST", route=~".*/webhook-messages"';

export const OVERVIEW: Dashboard = {
  name: 'overview',
  title: 'Overview',
  description: 'Whether messages are accepted and delivered in time, and what waits.',
  rows: [
    {
      title: 'Objectives',
      panels: [
        {
          title: 'Messages answered with 5xx',
          description: 'The objective is less than 0.1 % in 30 days.',
          unit: 'percentunit',
          queries: [
            {
              expr: `${orZero(totalRate('posthorn_http_requests_total', `${MESSAGES}, code=~"5.."`))} / ${totalRate('posthorn_http_requests_total', MESSAGES)}`,
              legend: 'refused',
            },
          ],
        },
        {
          title: 'First attempts that began late',
          description:
            'More than a minute counts for the alert. A few seconds are also the wait for a slow endpoint.',
          unit: 'percentunit',
          queries: [60, 5].map((seconds) => ({
            expr: `1 - ${totalRate('posthorn_delivery_lag_seconds_bucket', `stage="first", le=~"${seconds}(\\\\.0)?"`)} / ${totalRate('posthorn_delivery_lag_seconds_count', 'stage="first"')}`,
            legend: `after ${seconds} s`,
          })),
        },
        {
          title: 'Canary',
          description:
            'Age of the last message that came back, and how long messages take. Shown when a canary is set up.',
          unit: 's',
          queries: [
            { expr: 'min(posthorn_canary_age_seconds{SCOPE})', legend: 'age' },
            {
              expr: quantileBy(0.99, '', 'posthorn_canary_duration_seconds'),
              legend: 'duration, p99',
            },
          ],
        },
        {
          title: 'Alerts that fire',
          unit: 'short',
          queries: [
            {
              expr: orZero(
                'count by (alertname) (ALERTS{alertstate="firing", alertname=~"Posthorn.*", SCOPE})',
              ),
              legend: '{{alertname}}',
            },
          ],
        },
      ],
    },
    {
      title: 'Traffic',
      panels: [
        {
          title: 'Messages accepted',
          unit: 'reqps',
          queries: [{ expr: totalRate('posthorn_messages_accepted_total'), legend: 'accepted' }],
        },
        {
          title: 'Attempts by outcome',
          unit: 'reqps',
          queries: [
            { expr: rateBy('outcome', 'posthorn_delivery_attempts_total'), legend: '{{outcome}}' },
          ],
        },
        {
          title: 'Deliveries ended',
          unit: 'reqps',
          queries: [
            { expr: rateBy('result', 'posthorn_deliveries_finished_total'), legend: '{{result}}' },
          ],
        },
        {
          title: 'Attempts deferred',
          description: 'What endpoints cannot take now, by reason. Nothing of it is lost.',
          unit: 'reqps',
          queries: [{ expr: rateBy('because', 'posthorn_deferrals_total'), legend: '{{because}}' }],
        },
      ],
    },
    {
      title: 'Time',
      panels: [
        {
          title: 'Response to a message',
          unit: 's',
          queries: [0.5, 0.99].map((quantile) => ({
            expr: quantileBy(quantile, '', 'posthorn_http_request_duration_seconds', MESSAGES),
            legend: `p${quantile * 100}`,
          })),
        },
        {
          title: 'Due to begun, 99th percentile',
          unit: 's',
          queries: [
            {
              expr: quantileBy(0.99, 'stage', 'posthorn_delivery_lag_seconds'),
              legend: '{{stage}}',
            },
          ],
        },
        {
          title: 'Answer of endpoints, 99th percentile',
          unit: 's',
          queries: [
            {
              expr: quantileBy(0.99, 'result', 'posthorn_delivery_attempt_duration_seconds'),
              legend: '{{result}}',
            },
          ],
        },
        {
          title: 'Accepted to delivered',
          unit: 's',
          queries: [0.5, 0.99].map((quantile) => ({
            expr: quantileBy(
              quantile,
              '',
              'posthorn_delivery_completion_seconds',
              'result="delivered"',
            ),
            legend: `p${quantile * 100}`,
          })),
        },
      ],
    },
    {
      title: 'Backlog',
      panels: [
        {
          title: 'Records that are ready',
          description: 'Parked and deferred records count once they are due.',
          unit: 'short',
          queries: [{ expr: sumBy('topic', 'posthorn_ready_records'), legend: '{{topic}}' }],
        },
        {
          title: 'Age of the oldest ready record',
          unit: 's',
          queries: [
            { expr: highestBy('topic', 'posthorn_oldest_ready_age_seconds'), legend: '{{topic}}' },
          ],
        },
        {
          title: 'Time to drain',
          description: 'If nothing new comes. Not a number where nothing is finished or ready.',
          unit: 's',
          queries: [{ expr: DRAIN_TIME, legend: '{{topic}}' }],
        },
        {
          title: 'Age of the oldest record to ingest',
          description: 'By source. Shown where topics are ingested.',
          unit: 's',
          queries: [
            { expr: highestBy('source', 'posthorn_ingest_lag_seconds'), legend: '{{source}}' },
          ],
        },
        {
          title: 'Records ingested',
          description:
            'By source, and what was rejected, by code. Shown where topics are ingested.',
          unit: 'reqps',
          queries: [
            { expr: rateBy('source', 'posthorn_ingest_accepted_total'), legend: '{{source}}' },
            {
              expr: rateBy('source, code', 'posthorn_ingest_rejected_total'),
              legend: '{{source}}: {{code}}',
            },
          ],
        },
        {
          title: 'Open circuits',
          unit: 'short',
          queries: [{ expr: sumBy('state', 'posthorn_circuit_breakers'), legend: '{{state}}' }],
        },
      ],
    },
  ],
};
