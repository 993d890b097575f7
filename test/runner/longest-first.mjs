/**
 * Parts of the paths of test files that take long, the longest first (7 s to 160 s). Started last, one of
 * them would run on while the other workers have nothing left to do.
 */
const LONG = [
  'dashboard/pages',
  'outages/kills',
  'outages/frozen-stores',
  'retry/schedule',
  'outages/lost-topic',
  'dashboard/story',
  'contract/limits',
  'deliver/backlogs',
  'contract-after-retries/generated-requests',
  'operate/dead-letters',
  'outages/clock-jumps',
  'deliver/neighbours',
  'dashboard/sessions-and-portal',
  'deliver/dispatchers',
  'resend/resends',
  'deliver/webhook-state',
  'contract/deletions',
  'gateway/large-project',
  'operate/index-migrations',
  'kafka/contract/stalls',
  'operate/topics',
  'contract/dashboard/sessions',
  'operate/operations',
  'operate/secured-stack',
  'operate/secured-kafka',
  'operate/backup-and-restore',
  'operate/secrets-at-rest',
  'gateway/query-plans',
  'operate/redis-cluster',
  'mongo/days/days',
  'kafka/contract/record-log',
  'kafka/contract/members',
  'dashboard/front-proxies',
  'operate/operator-events',
  'contract/requests/hostile-values',
  'openapi/document.test',
  'openapi/body-rules',
  'simulation/simulation.test',
  'simulation/endpoint',
  'service/tracing-modules',
  'mongo/messages/message-queries',
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
