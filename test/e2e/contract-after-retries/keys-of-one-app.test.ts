import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createApiClient, type ApiAnswer, type ApiClient } from '../../support/api/api-client.ts';
import { dataOf, expectFailure } from '../../support/api/expect-answers.ts';
import {
  comparable,
  createOneOfEach,
  everythingOf,
  kindOf,
  unknownLike,
  type Ids,
} from '../../support/api/one-of-each.ts';
import {
  placesOf,
  readOperations,
  requestWith,
  type Place,
} from '../../support/api/request-places.ts';
import { createResources, type ShownWebhook } from '../../support/api/resources.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';

/** Stands in every text of the other app. */
const MARK = 'only-theirs';

let posthorn: OwnCompany;
let receiver: Receiver;
/** With a key of the whole company. */
let company: ApiClient;
/** With a key of our app. */
let api: ApiClient;
let ours: Ids;
let theirs: Ids;

beforeAll(async () => {
  posthorn = await joinShared('contract-after-retries');
  receiver = await startReceiver();
  receiver.answerWith(failing(99));
  const { baseUrl, apiKey, companyId: companyid } = posthorn;
  company = createApiClient(baseUrl, apiKey, { companyid });
  ours = await createOneOfEach(company, receiver.url, 'ours');
  theirs = await createOneOfEach(company, receiver.url, MARK);
  const created = await company.post('/api/v1/api-keys', { name: 'ours', appId: ours.appId });
  const { id: keyId, key } = dataOf<{ id: string; key: string }>(created, 201);
  ours = { ...ours, keyId };
  api = createApiClient(baseUrl, key, { companyid });
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

async function ask(place: Place, id: string): Promise<ApiAnswer> {
  const { method, path, body } = requestWith(place, id, ours);
  return api.request(method, path, body);
}

describe('With a key of one app [security]', () => {
  it('everything of another app gets 404 as an unknown id does, wherever an operation takes one', async () => {
    const places = placesOf(await readOperations(posthorn.baseUrl));
    const before = await everythingOf({ api: company, ids: theirs });
    const asked: string[] = [];
    for (const place of places) {
      const kind = kindOf(place, theirs);
      if (!kind || place.name === 'cursor') continue;
      const [id, random] = [theirs[kind], unknownLike(theirs[kind])];
      const [answer, expected] = [await ask(place, id), await ask(place, random)];
      const { method, path } = place.operation;
      const name = `${method} ${path} ${place.where} ${place.name}`;
      expect([name, comparable(answer, id)]).toEqual([name, comparable(expected, random)]);
      expect([name, answer.status, answer.body.code]).toEqual([name, 404, 'not_found']);
      asked.push(name);
    }
    expect(asked.length).toBeGreaterThan(40);
    expect(await everythingOf({ api: company, ids: theirs })).toEqual(before);
  });

  it('everything of its own app is shown, and nothing else in any list', async () => {
    const shown = JSON.stringify(await everythingOf({ api, ids: ours }));
    // No list has the links to the portal.
    const listed = Object.values({ ...ours, linkId: ours.appId });
    for (const id of listed) expect(shown).toContain(id);
    for (const id of [...Object.values(theirs), MARK]) expect(shown).not.toContain(id);
  });

  it('projects and apps are neither created nor changed, nor are global webhooks', async () => {
    const { projectId } = ours;
    const url = receiver.url;
    const refused = [
      await api.post('/projects', { name: 'New' }),
      await api.put(`/api/v1/projects/${projectId}`, { name: 'Changed' }),
      await api.delete(`/api/v1/projects/${projectId}`),
      await api.post('/apps', { name: 'New', projectId }),
      await api.post('/webhooks', { projectId, environmentId: 'live', url }),
    ];
    for (const answer of refused) expectFailure(answer, 403, 'insufficient_scope');
  });

  it('its webhooks are created, changed and deleted, and its messages sent', async () => {
    const make = createResources(api);
    const { appId } = ours;
    const { id } = await make.webhook({ appId, url: `${receiver.url}/more` });
    await api.put(`/webhooks/${id}`, { name: 'Changed' });
    expect(dataOf<ShownWebhook>(await api.get(`/webhooks/${id}`)).name).toBe('Changed');
    const { id: messageId } = await make.message({ webhookId: id });
    dataOf(await api.get(`/api/v1/webhook-messages/${messageId}`));
    dataOf(await api.delete(`/webhooks/${id}`));
  });

  it('keys are made for this app only', async () => {
    const made = dataOf<{ appId: string }>(await api.post('/api/v1/api-keys', { name: 'M' }), 201);
    expect(made.appId).toBe(ours.appId);
  });
});
