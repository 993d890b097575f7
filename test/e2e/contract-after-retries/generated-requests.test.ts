import { insertPeople } from '../../support/stores/insert-people.ts';
import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  createCompiler,
  operationsOf,
  type ApiDocument,
  type Operation,
} from '../../support/api/api-document.ts';
import { createCompany } from '../../support/process/companies.ts';
import { joinWithGateway, type OwnGateway } from '../../support/process/shared-posthorn.ts';
import { useReceiver } from '../../support/process/use-company.ts';
import { brokenRequests, respelledRequests } from '../../support/requests/broken-requests.ts';
import { createJudge, sendAll } from '../../support/requests/judge-answer.ts';
import { type KnownIds, createKnownIds, DISPOSABLE } from '../../support/requests/known-ids.ts';
import { createDrafts } from '../../support/requests/valid-requests.ts';
import { toWire, type WireRequest } from '../../support/requests/wire-request.ts';

/** Of each version others: see test/runner/fuzz-seed.ts. */
const REQUESTS = 4_000;
/** As many as a company has under way at once. Further ones would wait for these and be refused while the store stalls. */
const IN_FLIGHT = 16;
/** All that are under way, each time that the store of a busy machine stalls. */
const MAX_SENT_AGAIN = 5 * IN_FLIGHT;
const seed = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31));

const SETTINGS = {
  // Wrong keys are counted by address, and all test files have the same.
  REDIS_PREFIX: 'tgenerated:',
  LOG_LEVEL: 'warn',
  RATE_LIMIT_COMPANY_PER_MINUTE: '0',
  RATE_LIMIT_ADDRESS_PER_MINUTE: '0',
  WRONG_KEYS_PER_MINUTE: '1000000',
  // Nobody signs in: the issuer is not there.
  OIDC_ISSUER: 'http://127.0.0.1:9',
  OIDC_CLIENT_ID: 'posthorn',
  PUBLIC_URL: 'http://127.0.0.1:9',
};

describe('4,000 requests generated from the API document [security]', () => {
  let posthorn: OwnGateway;
  const receiver = useReceiver();
  let document: ApiDocument;
  let ids: KnownIds;

  beforeAll(async () => {
    receiver.answerWith((response, { path }) => {
      response.writeHead(path === '/bad' ? 500 : 200).end('noted');
    });
    // A failed delivery is exhausted after one more attempt. Only warnings are logged: the output is read.
    posthorn = await joinWithGateway('contract-after-retries', SETTINGS);
    const answer = await fetch(`${posthorn.baseUrl}/openapi.json`);
    document = (await answer.json()) as ApiDocument;
    const other = await createCompany(posthorn, 'Other');
    const { origin } = new URL(receiver.url);
    const places = { goodUrl: receiver.url, badUrl: `${origin}/bad` };
    const insert = (companyId: string, count: number) =>
      insertPeople(posthorn.env.MONGODB_URL, companyId, count);
    const people = {
      own: await insert(posthorn.companyId, DISPOSABLE + 1),
      foreign: await insert(other.companyId, 1),
    };
    ids = await createKnownIds(posthorn.api, other.api, places, people);
  }, 120_000);

  afterAll(async () => {
    await posthorn.stop();
  });

  function generate(operations: readonly Operation[]): WireRequest[] {
    const { schemas: named } = document.components;
    const deps = {
      named,
      compile: createCompiler(document),
      ids,
      apiKey: posthorn.apiKey,
      companyId: posthorn.companyId,
      receiverUrl: new URL(receiver.url).origin,
    };
    const draftsOf = createDrafts(deps);
    const anyOf = (operation: Operation): fc.Arbitrary<WireRequest> => {
      const drafts = draftsOf(operation);
      return fc.oneof(
        { arbitrary: drafts.map((draft) => toWire(draft, 'valid')), weight: 4 },
        { arbitrary: respelledRequests(drafts), weight: 1 },
        { arbitrary: brokenRequests(deps, operation, drafts), weight: 5 },
      );
    };
    return fc.sample(fc.oneof(...operations.map(anyOf)), { numRuns: REQUESTS, seed });
  }

  it('each get a documented response, and none that the document forbids is accepted', async () => {
    const operations = operationsOf(document);
    const requests = generate(operations);
    const judge = createJudge(createCompiler(document));
    const failures: object[] = [];
    const byOperation = createCounts();
    const byChange = createCounts();
    const sentAgain = await sendAll(posthorn.baseUrl, requests, IN_FLIGHT, (request, answer) => {
      const { operation, what, path, headers, body } = request;
      byOperation.add(`${operation.id} ${answer.status}`);
      byChange.add(`${what} ${answer.status}`);
      const problems = judge(request, answer);
      if (problems.length === 0) return;
      const sent = { what, request: `${request.method} ${path}`, headers, body: body?.toString() };
      failures.push({ problems, ...sent, status: answer.status, answer: answer.text });
    });
    console.log(byOperation.text());
    console.log(byChange.text());
    expect({ failed: failures.length, first: failures.slice(0, 5) }).toEqual({
      failed: 0,
      first: [],
    });
    if (sentAgain > 0) console.log(posthorn.gateway.output());
    expect(sentAgain).toBeLessThanOrEqual(MAX_SENT_AGAIN);
    expect(requests).toHaveLength(REQUESTS);
    const never = operations.filter(
      ({ id }) => !byOperation.has(`${id} 20`) || !byOperation.has(`${id} 4`),
    );
    expect(never.map(({ id }) => id)).toEqual([]);
    expect(posthorn.gateway.isRunning()).toBe(true);
    // A store that stalls is warned of, with the stack of its error.
    const lines = posthorn.gateway.output().split('\n');
    const faults = lines.filter((line) => !line.includes('"level":"warn"')).join('\n');
    expect(faults).not.toMatch(/unhandled|uncaught|\bat .+:\d+:\d+/i);
  }, 300_000);

  it('get 405 for the methods that the document does not name', async () => {
    const methods = ['get', 'post', 'put', 'delete', 'patch'];
    const missing = Object.entries(document.paths).flatMap(([path, named]) => {
      const all = { ...named, ...document.paths[otherSpelling(path)] };
      return (
        methods
          // `PATCH` is another spelling of `PUT`.
          .filter((method) => !((method === 'patch' ? 'put' : method) in all))
          .map((method) => ({ method, path }))
      );
    });
    expect(missing.length).toBeGreaterThan(50);
    for (const { method, path } of missing) {
      const answer = await posthorn.api.request(
        method.toUpperCase(),
        path,
        method === 'get' ? undefined : {},
      );
      expect([method, path, answer.status, answer.body.code]).toEqual([
        ...[method, path, 405, 'method_not_allowed'],
      ]);
    }
  });
});

/** The document has the main address of each operation, which may have another one (docs/contract.md C1.1). */
function otherSpelling(path: string): string {
  return path.startsWith('/api/v1/') ? path.slice('/api/v1'.length) : `/api/v1${path}`;
}

interface Counts {
  add: (what: string) => void;
  has: (beginning: string) => boolean;
  /** Returns the counts in one line. */
  text: () => string;
}

function createCounts(): Counts {
  const counts = new Map<string, number>();
  return {
    has: (beginning) => [...counts.keys()].some((what) => what.startsWith(beginning)),
    add: (what) => counts.set(what, (counts.get(what) ?? 0) + 1),
    text: () =>
      [...counts]
        .sort()
        .map((each) => each.join(': '))
        .join(', '),
  };
}
