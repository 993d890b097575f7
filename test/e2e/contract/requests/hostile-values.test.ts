import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  placesOf,
  readOperations,
  requestWith,
  type Place,
} from '../../../support/api/request-places.ts';
import type { ApiClient } from '../../../support/api/api-client.ts';
import { withCompanyId } from '../../../support/process/companies.ts';
import { dataOf } from '../../../support/api/expect-answers.ts';
import { joinWithGateway, type OwnGateway } from '../../../support/process/shared-posthorn.ts';
import { useReceiver } from '../../../support/process/use-company.ts';
import { createResources, type Resources } from '../../../support/api/resources.ts';

const TEXTS = [
  ...['{"$gt":""}', '$where', 'a.b.$c', '__proto__', 'constructor.prototype', '\u0000', '[$ne]'],
  ...["' || '1'=='1", '{"$ref":"x"}', '../../../etc/passwd', '%2e%2e%2f', '\ud800', '\r\nX-A: b'],
];
const OBJECTS: object[] = [
  ...[{ $gt: '' }, { $ne: null }, { $where: 'sleep(1000)' }, { $regex: '.*' }, ['$in']],
  ...[JSON.parse('{"__proto__":{"polluted":1}}') as object, { constructor: { prototype: {} } }],
];

let posthorn: OwnGateway;
const receiver = useReceiver();
let api: ApiClient;
let make: Resources;
let known: Record<string, string>;
let places: Place[];

beforeAll(async () => {
  posthorn = await joinWithGateway('contract');
  api = withCompanyId(posthorn);
  make = createResources(api);
  const { id: projectId } = await make.project({ name: 'Stays' });
  const { id: appId } = await make.app({ projectId, name: 'Stays' });
  const { url } = receiver;
  const { id: webhookId } = await make.webhook({ appId, url, disabled: true });
  const { id: messageId } = await make.message({ webhookId });
  known = { projectId, appId, webhookId, messageId, url };
  places = placesOf(await readOperations(posthorn.baseUrl));
}, 120_000);

afterAll(async () => {
  await posthorn.stop();
});

/** Returns everything that must stay the same whatever is sent. */
async function untouched(): Promise<unknown[]> {
  const { projectId = '', appId = '', webhookId = '' } = known;
  const paths = [`/projects/${projectId}`, `/apps/${appId}`, `/webhooks/${webhookId}`];
  return Promise.all(paths.map(async (path) => dataOf<unknown>(await api.get(path))));
}

async function statusesOf(place: Place, values: unknown[]): Promise<string[]> {
  const answers = await Promise.all(
    values.map((value) => {
      const { method, path, body } = requestWith(place, value, known);
      return api.request(method, path, body);
    }),
  );
  return answers.map(({ status, body }) => `${status} ${body.code ?? ''}`.trim());
}

const nameOf = ({ operation, where, name }: Place): string =>
  `${operation.method} ${operation.path} ${where} ${name}`;

/** A filter by an unknown id matches nothing. */
const FILTERED = [
  '/api/v1/webhook-messages',
  '/api/v1/audit-events',
  '/api/v1/deliveries',
  '/api/v1/webhooks/{webhookId}/replay-missing/estimate',
  '/api/v1/resends',
  '/api/v1/cancellations',
  '/api/v1/find-apps',
  '/api/v1/find-webhooks',
  '/api/v1/app-counts',
  '/api/v1/api-keys',
  '/api/v1/projects/{projectId}/event-types',
  '/api/v1/apps/{appId}/event-types',
];

/** As those by an event type; an unknown app or webhook is 404. */
const PLANS = /\/deliveries\/(cancel|resend)\/estimate$/;

const CREATED = /^(20[12]|400 invalid_request|404 not_found|409 (uid_taken|resend_running))$/;
const TESTED = /^(200|400 invalid_request)$/;
/** The installation has no issuer, so that nobody is invited (docs/contract.md C26.1). */
const WITHOUT_ISSUER = /^(400 invalid_request|404 route_not_found)$/;

function expectedOf(path: string): RegExp {
  if (path === '/api/v1/test-filter') return TESTED;
  return path === '/api/v1/invitations' ? WITHOUT_ISSUER : CREATED;
}

describe('Hostile values [security]', () => {
  it.each(['path', 'query'] as const)(
    'in the %s are refused with 400 or 404 and change nothing',
    async (where) => {
      const before = await untouched();
      for (const place of places.filter((each) => each.where === where)) {
        for (const status of await statusesOf(place, TEXTS)) {
          const isFilter = place.where === 'query' && FILTERED.includes(place.operation.path);
          const isPlan = PLANS.test(place.operation.path);
          const expected = isFilter ? /^(200|400 invalid_request)$/ : /^40[04] /;
          if (isPlan && status === '200') continue;
          expect([nameOf(place), status]).toEqual([nameOf(place), expect.stringMatching(expected)]);
        }
      }
      expect(await untouched()).toEqual(before);
    },
  );

  it('values in the body are refused or stored literally, and objects in place of text are always refused', async () => {
    for (const place of places.filter((each) => each.where === 'body')) {
      const { method, path } = place.operation;
      // Of our own resources only creations: existing resources must stay as they are.
      if (method === 'PUT' || path.includes('{')) continue;
      for (const status of await statusesOf(place, TEXTS)) {
        expect([nameOf(place), status]).toEqual([
          nameOf(place),
          expect.stringMatching(expectedOf(path)),
        ]);
      }
      if (['payload', 'metadata', 'tags'].includes(place.name)) continue;
      for (const status of await statusesOf(place, OBJECTS)) {
        expect([nameOf(place), status]).toEqual([nameOf(place), '400 invalid_request']);
      }
    }
  });

  it.each(TEXTS.filter((text) => text !== '\ud800'))(
    'such as %j are stored literally as a name',
    async (name) => {
      const { id } = await make.project({ name, description: name });
      const shown = dataOf<object>(await api.get(`/api/v1/projects/${id}`));
      expect(shown).toMatchObject({ name, description: name });
    },
  );

  it.each(['$gt', '$where', 'projectId.$ne', '__proto__', 'constructor', 'projectId[$ne]'])(
    'such as %s are refused as a key of a body and of a query',
    async (key) => {
      const body = `{"name":"App","projectId":"${String(known.projectId)}",${JSON.stringify(key)}:{}}`;
      for (const answer of [
        await api.post('/apps', body),
        await api.get(`/webhooks?${encodeURIComponent(key)}=1`),
      ]) {
        expect(answer.status).toBe(400);
        expect(answer.body.errors?.map(({ path }) => path)).toEqual([key]);
      }
    },
  );

  it('cause no error in the log of the gateway', () => {
    expect(posthorn.gateway.output()).not.toMatch(/"level":"(error|fatal)"/);
  });
});
