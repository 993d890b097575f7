import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  placesOf,
  readOperations,
  requestWith,
  type Place,
} from '../../support/api/request-places.ts';
import { createApiClient, type ApiAnswer, type ApiClient } from '../../support/api/api-client.ts';
import { createCompany } from '../../support/process/companies.ts';
import { eventually } from '../../support/time/eventually.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { createResources, type ShownDelivery } from '../../support/api/resources.ts';

/** The ids of one company, by the names of the parameters and fields that take them. */
type Ids = Record<
  'projectId' | 'appId' | 'webhookId' | 'messageId' | 'deliveryId' | 'resendId' | 'keyId',
  string
>;

interface Tenant {
  api: ApiClient;
  ids: Ids;
}

/** Stands in every text of the other company. */
const MARK = 'only-theirs';

let posthorn: OwnCompany;
let receiver: Receiver;
let ours: Tenant;
let theirs: Tenant;
let places: Place[];

beforeAll(async () => {
  posthorn = await joinShared('contract-after-retries');
  receiver = await startReceiver();
  receiver.answerWith(failing(99));
  const { apiKey, companyId } = posthorn;
  ours = await createEverything(apiKey, companyId, 'ours');
  const other = await createCompany(posthorn, MARK);
  theirs = await createEverything(other.apiKey, other.companyId, MARK);
  places = placesOf(await readOperations(posthorn.baseUrl));
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

/** Creates one resource of each kind for a company and waits until none changes any more. */
async function createEverything(apiKey: string, companyid: string, mark: string): Promise<Tenant> {
  const api = createApiClient(posthorn.baseUrl, apiKey, { companyid });
  const make = createResources(api);
  const { id: projectId } = await make.project({ name: mark });
  const { id: appId } = await make.app({ name: mark, projectId });
  const url = `${receiver.url}/${mark}`;
  const { id: webhookId } = await make.webhook({ name: mark, url, appId, hmacSecret: mark });
  const { id: messageId, deliveries } = await make.message({ appId, payload: { mark } });
  const deliveryId = String(deliveries[0]?.id);
  const { createdAt: since } = await make.deliveryOnce('exhausted', deliveryId);
  const resend = await api.post(`/api/v1/webhooks/${webhookId}/resend-failed`, { since });
  const { id: resendId } = dataOf<{ id: string }>(resend, 202);
  await eventually('the end of the resend', async () => {
    const { body } = await api.get(`/api/v1/resends/${resendId}`);
    return (body.data as { status: string }).status === 'done';
  });
  const key = await api.post('/api/v1/api-keys', { name: mark });
  const { id: keyId } = dataOf<{ id: string }>(key, 201);
  return { api, ids: { projectId, appId, webhookId, messageId, deliveryId, resendId, keyId } };
}

/** Everything that the API shows of a company. */
async function everythingOf({ api, ids }: Tenant): Promise<unknown[]> {
  const paths = [
    ...[`/projects`, `/projects/${ids.projectId}`, `/apps?projectId=${ids.projectId}`],
    ...[`/apps/${ids.appId}`, '/webhooks', `/webhooks/${ids.webhookId}`, '/webhook-messages'],
    ...[`/webhooks/${ids.webhookId}/health`, `/webhook-messages/${ids.messageId}`],
    ...[`/webhook-messages/${ids.messageId}/deliveries`, `/deliveries/${ids.deliveryId}`],
    ...[`/resends/${ids.resendId}`, '/api-keys'],
  ];
  const answers = await Promise.all(paths.map((path) => api.get(`/api/v1${path}`)));
  return answers.map((answer) => dataOf<unknown>(answer));
}

/** Returns the kind of id that belongs in this place, null when none does. */
function kindOf({ operation, name }: Place): keyof Ids | null {
  if (name === 'cursor') return operation.path.endsWith('/deliveries') ? 'webhookId' : 'messageId';
  return name in theirs.ids ? (name as keyof Ids) : null;
}

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** Returns an id that no resource has, of the same kind and the same millisecond. */
function unknownLike(id: string): string {
  const random = Array.from({ length: 16 }, () => ALPHABET[randomInt(32)]).join('');
  return id.slice(0, -16) + random;
}

async function ask(place: Place, id: string): Promise<ApiAnswer> {
  const { method, path, body } = requestWith(place, id, ours.ids);
  return ours.api.request(method, path, body);
}

function comparable({ status, body }: ApiAnswer, id: string): object {
  const text = JSON.stringify({ ...body, requestId: undefined });
  return { status, body: text.replaceAll(id, 'ID') };
}

describe('What belongs to another company', () => {
  it('gets the response of an unknown id, wherever an operation takes one', async () => {
    const before = await everythingOf(theirs);
    const asked: string[] = [];
    for (const place of places) {
      const kind = kindOf(place);
      if (!kind) continue;
      const [id, random] = [theirs.ids[kind], unknownLike(theirs.ids[kind])];
      const [answer, expected] = [await ask(place, id), await ask(place, random)];
      const { method, path } = place.operation;
      const name = `${method} ${path} ${place.where} ${place.name}`;
      expect([name, comparable(answer, id)]).toEqual([name, comparable(expected, random)]);
      const isFilter = place.where === 'query' && answer.status === 200;
      expect([name, isFilter ? 404 : answer.status]).toEqual([name, 404]);
      expect(JSON.stringify(answer.body)).not.toContain(MARK);
      asked.push(name);
    }
    expect(asked.length).toBeGreaterThan(40);
    expect(await everythingOf(theirs)).toEqual(before);
  });

  it('is in no list of our company and matches none of its filters', async () => {
    const shown = JSON.stringify(await everythingOf(ours));
    for (const id of [...Object.values(theirs.ids), MARK]) expect(shown).not.toContain(id);
  });

  it('receives none of the messages of our company', async () => {
    const sent = await ours.api.post('/webhook-messages', { appId: ours.ids.appId, payload: {} });
    const { id, deliveries } = dataOf<{ id: string; deliveries: ShownDelivery[] }>(sent, 202);
    expect(deliveries.map(({ webhookId }) => webhookId)).toEqual([ours.ids.webhookId]);
    await createResources(ours.api).deliveryOnce('exhausted', String(deliveries[0]?.id));
    expect(receiver.of(id).map(({ path }) => path)).toEqual(['/hook/ours', '/hook/ours']);
  });
});
