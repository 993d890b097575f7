/**
 * Parts of the paths of test files that take long, the longest first (10 s to 140 s). Started last, one of
 * them would run on while the other workers have nothing left to do.
 */
const LONG = [
  'outages/retry-killed',
  'outages/gateway-killed',
  'retry/schedule',
  'outages/clock-jumps',
  'kafka/record-log-stall',
  'outages/lost-topic',
  'gateway/query-plans',
  'deliver/rate-limited-webhook',
  'resend/resend-app',
  'gateway/remove-large-tree',
  'retry/retries-behind-first',
  'resend/resend-survives',
  'deliver/circuit-handed-over',
  'outages/one-of-two-dispatchers-killed',
  'outages/unreadable-records',
  'kafka/record-log-rebalance',
  'deliver/dispatcher-joins',
  'outages/dispatcher-killed',
  'operate/operations',
  'gateway/generated-requests',
  'contract/webhook-changes',
  'deliver/neighbours',
  'retry/parked-retries',
  'operate/secrets-at-rest',
  'deliver/retry-after',
  'contract/idempotency',
  'contract/hostile-values',
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
