import type { Dashboard, Panel, Unit } from './dashboard.ts';
import { highestBy, orZero, quantileBy, rateBy, sumBy, totalRate } from './expressions.ts';

const MESSAGES = 'method="POST", route=~".*/webhook-messages"';

function panel(title: string, unit: Unit, expr: string, legend: string): Panel {
  return { title, unit, queries: [{ expr, legend }] };
}

/** Six columns: the steps of ARCHITECTURE.md from left to right. */
export const WAY_OF_A_MESSAGE: Dashboard = {
  name: 'way-of-a-message',
  title: 'Way of a message',
  description:
    'Accept, publish, attempt, settle, park and release from left to right. What is wrong begins at the first column that looks different from an hour ago.',
  rows: [
    {
      title: 'How much passes',
      panels: [
        panel('Accept', 'reqps', totalRate('posthorn_messages_accepted_total'), 'messages'),
        panel(
          'Publish',
          'reqps',
          rateBy('topic', 'posthorn_kafka_produced_records_total', 'topic=~".*message-created"'),
          'records',
        ),
        panel(
          'Attempt',
          'reqps',
          rateBy('trigger', 'posthorn_delivery_attempts_total'),
          '{{trigger}}',
        ),
        panel(
          'Settle',
          'reqps',
          rateBy('result', 'posthorn_deliveries_finished_total'),
          '{{result}}',
        ),
        panel('Park', 'reqps', rateBy('delay', 'posthorn_retries_parked_total'), '{{delay}}'),
        panel(
          'Release',
          'reqps',
          rateBy('kind', 'posthorn_retry_lateness_seconds_count'),
          '{{kind}}',
        ),
      ],
    },
    {
      title: 'What waits',
      panels: [
        panel('Requests', 'short', sumBy('', 'posthorn_http_requests_in_flight'), 'in flight'),
        panel('Unpublished', 'short', sumBy('', 'posthorn_unpublished_messages'), 'messages'),
        {
          title: 'Attempts',
          unit: 'short',
          queries: [
            { expr: sumBy('', 'posthorn_deliveries_in_flight'), legend: 'under way' },
            { expr: sumBy('', 'posthorn_deliveries_waiting'), legend: 'waiting in memory' },
          ],
        },
        panel(
          'Ready',
          'short',
          sumBy('topic', 'posthorn_ready_records', 'group=~".*dispatcher.*"'),
          '{{topic}}',
        ),
        panel(
          'To park',
          'short',
          sumBy('topic', 'posthorn_ready_records', 'topic=~".*delivery-failed"'),
          'records',
        ),
        panel(
          'Not released',
          'short',
          sumBy('delay, kind', 'posthorn_retry_pending'),
          '{{kind}} {{delay}}',
        ),
      ],
    },
    {
      title: 'How long it takes',
      panels: [
        panel(
          'Response, p99',
          's',
          quantileBy(0.99, '', 'posthorn_http_request_duration_seconds', MESSAGES),
          'p99',
        ),
        panel(
          'Oldest unpublished',
          's',
          'max(posthorn_unpublished_oldest_seconds{SCOPE})',
          'oldest',
        ),
        panel(
          'Due to begun, p99',
          's',
          quantileBy(0.99, 'stage', 'posthorn_delivery_lag_seconds'),
          '{{stage}}',
        ),
        panel(
          'MongoDB, p95',
          's',
          quantileBy(
            0.95,
            'operation',
            'posthorn_store_operation_duration_seconds',
            'store="mongodb"',
          ),
          '{{operation}}',
        ),
        panel(
          'Oldest failure',
          's',
          highestBy('topic', 'posthorn_oldest_ready_age_seconds', 'topic=~".*delivery-failed"'),
          'oldest',
        ),
        panel(
          'Late by, p99',
          's',
          quantileBy(0.99, 'kind', 'posthorn_retry_lateness_seconds'),
          '{{kind}}',
        ),
      ],
    },
    {
      title: 'What goes wrong',
      panels: [
        panel(
          'Refused',
          'reqps',
          orZero(rateBy('reason', 'posthorn_messages_rejected_total')),
          '{{reason}}',
        ),
        panel(
          'Kafka errors',
          'reqps',
          orZero(totalRate('posthorn_store_errors_total', 'store="kafka"')),
          'errors',
        ),
        panel(
          'Failed attempts',
          'reqps',
          orZero(rateBy('outcome', 'posthorn_delivery_attempts_total', 'outcome!="success"')),
          '{{outcome}}',
        ),
        panel(
          'Failing steps',
          'short',
          orZero(highestBy('step', 'posthorn_failing_steps')),
          '{{step}}',
        ),
        panel(
          'Dead letters',
          'reqps',
          orZero(rateBy('reason', 'posthorn_dead_letter_records_total')),
          '{{reason}}',
        ),
        panel(
          'Overdue',
          's',
          highestBy('delay, kind', 'posthorn_retry_overdue_seconds'),
          '{{kind}} {{delay}}',
        ),
      ],
    },
  ],
};
