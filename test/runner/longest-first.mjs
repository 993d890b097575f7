/**
 * Parts of the paths of test files that take long, the longest first (10 s to 105 s). Started last, one of
 * them would run on while the other workers have nothing left to do.
 */
const LONG = [
  'outages/retry-killed',
  'retry/schedule',
  'retry/retries-behind-first',
  'outages/unreadable-records',
  'outages/clock-jumps',
  'gateway/query-plans',
  'outages/lost-topic',
  'resend/resend-app',
  'outages/gateway-killed',
  'outages/one-of-two-dispatchers-killed',
  'outages/stopped-while-stores-hang',
  'contract-after-retries/generated-requests',
  'deliver/rate-limited-webhook',
  'deliver/dispatcher-joins',
  'outages/mongodb-frozen',
  'outages/kafka-stopped',
  'gateway/remove-large-tree',
  'kafka/contract/record-log-stall',
  'outages/deleted-topic',
  'outages/dispatcher-killed',
  'resend/resend-survives',
  'deliver/circuit-handed-over',
  'deliver/busy-endpoint',
  'deliver/neighbours',
  'operate/secured-stack',
  'operate/more-partitions',
  'resend/kafka-frozen',
  'operate/operations',
  'operate/secrets-at-rest',
  'deliver/circuit.test',
  'retry/parked-retries',
  'deliver/retry-after',
  'contract/requests/hostile-values',
  'webhooks/webhook-changes',
  'kafka/contract/record-log',
  'contract/idempotency',
  'history/list-messages',
  'concurrency/concurrency.test',
  'openapi/document.test',
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
