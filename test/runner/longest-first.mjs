/**
 * Parts of the paths of test files that take long, the longest first (10 s to 300 s): those with the shared Posthorns, then
 * those with one of their own, then the others. Started last, one of them would run on while the other workers have
 * nothing left to do. `npm test` prints the longest.
 */
const LONG = [
  'dashboard/pages',
  'contract/limits',
  'contract-after-retries/generated-requests',
  'dashboard/sessions-and-portal',
  'dashboard/story',
  'dashboard/forms',
  'cli/import',
  'cli/apply',
  'cli/commands',
  'contract/deletions',
  'simulation/suspended-day',
  'cli/listen',
  'contract/client-package',
  'cli/quickstart',
  'contract/requests/hostile-values',
  'operate/ingest',
  'deliver/holds',
  'contract-after-retries/generated-clients',
  'contract-after-retries/endings',
  'contract/webhooks/svix',
  'gateway/large-project',
  'outages/frozen-stores',
  'operate/dead-letters',
  'deliver/backlogs',
  'retry/schedule',
  'resend/resends',
  'operate/topics',
  'deliver/webhook-state',
  'gateway/query-plans',
  'operate/secured-kafka',
  'operate/index-migrations',
  'operate/operations',
  'deliver/neighbours',
  'operate/backup-and-restore',
  'operate/secured-stack',
  'deliver/dispatchers',
  'operate/secrets-at-rest',
  'dashboard/front-proxies',
  'kafka/contract/stalls',
  'mongo/days/days',
  'kafka/contract/record-log',
  'kafka/contract/members',
  'openapi/document.test',
  'openapi/body-rules',
  'simulation/simulation.test',
  'simulation/endpoint',
  'service/tracing-modules',
  'deploy/posthorn',
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
