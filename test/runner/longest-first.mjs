/**
 * Parts of the paths of test files that take long, the longest first (10 s to 170 s). Started last, one of
 * them would run on while the other workers have nothing left to do.
 */
const LONG = [
  'dashboard/pages',
  'contract-after-retries/generated-requests',
  'retry/schedule',
  'deliver/dispatchers',
  'deliver/backlogs',
  'outages/frozen-stores',
  'resend/resends',
  'outages/lost-topic',
  'gateway/large-project',
  'contract/limits',
  'contract/dashboard/sessions',
  'contract/deletions',
  'contract/requests/hostile-values',
  'deliver/webhook-state',
  'dashboard/story',
  'dashboard/sessions-and-portal',
  'operate/topics',
  'deliver/neighbours',
  'outages/kills',
  'outages/clock-jumps',
  'operate/dead-letters',
  'kafka/contract/stalls',
  'operate/operations',
  'operate/secured-stack',
  'operate/secured-kafka',
  'operate/index-migrations',
  'operate/secrets-at-rest',
  'operate/backup-and-restore',
  'gateway/query-plans',
  'tracing/tracing-modules',
  'openapi/body-rules',
  'kafka/contract/members',
  'operate/redis-cluster',
  'dashboard/front-proxies',
  'operate/operator-events',
  'kafka/contract/record-log',
  'mongo/messages/message-queries',
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
