/**
 * Parts of the paths of test files that take long, the longest first (10 s to 170 s). Started last, one of
 * them would run on while the other workers have nothing left to do.
 */
const LONG = [
  'dashboard/pages',
  'contract-after-retries/generated-requests',
  'resend/resend-app',
  'outages/retry-killed',
  'retry/schedule',
  'gateway/query-plans',
  'outages/clock-jumps',
  'outages/unreadable-records',
  'outages/lost-topic',
  'outages/gateway-killed',
  'retry/retries-behind-first',
  'kafka/contract/record-log-stall',
  'dashboard/story',
  'operate/daily-collections',
  'deliver/rate-limited-webhook',
  'outages/stopped-while-stores-hang',
  'contract/requests/hostile-values',
  'outages/kafka-stopped',
  'operate/secured-stack',
  'outages/one-of-two-dispatchers-killed',
  'outages/deleted-topic',
  'outages/mongodb-frozen',
  'operate/backup-and-restore',
  'dashboard/portal',
  'resend/kafka-frozen',
  'gateway/remove-large-tree',
  'operate/secured-kafka',
  'deliver/dispatcher-joins',
  'tracing/tracing-modules',
  'operate/secrets-at-rest',
  'deliver/circuit-handed-over',
  'openapi/body-rules',
  'resend/resend-survives',
  'operate/operations',
  'operate/index-migrations',
  'deliver/neighbours',
  'operate/more-partitions',
  'concurrency/concurrency.test',
  'kafka/contract/record-log-rebalance',
  'limits/greedy-company',
  'webhooks/webhook-changes',
  'company/deleted',
  'kafka/contract/backlog',
  'deliver/retry-after',
  'outages/dispatcher-killed',
  'deliver/circuit.test',
  'kafka/contract/record-log',
  'operate/redis-cluster',
  'retry/parked-retries',
  'contract/idempotency',
  'mongo/messages/message-queries',
  'dashboard/prefix',
  'openapi/document.test',
  'history/list-messages',
  'test/layers',
];

function rankOf({ path }) {
  const place = LONG.findIndex((part) => path.includes(part));
  return place < 0 ? LONG.length : place;
}

/** Orders the test files of a run; the rest, all short, keep their order by path. */
export default class LongestFirst {
  sort(tests) {
    return tests.toSorted((a, b) => rankOf(a) - rankOf(b) || (a.path < b.path ? -1 : 1));
  }

  allFailedTests() {
    return [];
  }

  cacheResults() {
    return undefined;
  }
}
