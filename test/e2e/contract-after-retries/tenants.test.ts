import { beforeAll, describe, expect, it } from '@jest/globals';
import {
  placesOf,
  readOperations,
  requestWith,
  type Place,
} from '../../support/api/request-places.ts';
import { createApiClient, type ApiAnswer } from '../../support/api/api-client.ts';
import { createCompany } from '../../support/process/companies.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { failing } from '../../support/receivers/receiver.ts';
import {
  comparable,
  createOneOfEach,
  everythingOf,
  kindOf,
  unknownLike,
  type Owner,
} from '../../support/api/one-of-each.ts';
import { createResources, type ShownDelivery } from '../../support/api/resources.ts';

/** Stands in every text of the other company. */
const MARK = 'only-theirs';

const { posthorn } = useCompany('contract-after-retries');
const receiver = useReceiver();
let ours: Owner;
let theirs: Owner;
let places: Place[];

beforeAll(async () => {
  receiver.answerWith(failing(99));
  const { apiKey, companyId } = posthorn;
  ours = await ownerOf(apiKey, companyId, 'ours');
  const other = await createCompany(posthorn, MARK);
  theirs = await ownerOf(other.apiKey, other.companyId, MARK);
  places = placesOf(await readOperations(posthorn.baseUrl));
}, 120_000);

async function ownerOf(apiKey: string, companyid: string, mark: string): Promise<Owner> {
  const api = createApiClient(posthorn.baseUrl, apiKey, { companyid });
  return { api, ids: await createOneOfEach(api, receiver.url, mark) };
}

async function ask(place: Place, id: string): Promise<ApiAnswer> {
  const { method, path, body } = requestWith(place, id, ours.ids);
  return ours.api.request(method, path, body);
}

describe('What belongs to another company [security]', () => {
  it('gets the response of an unknown id, wherever an operation takes one', async () => {
    const before = await everythingOf(theirs);
    const asked: string[] = [];
    for (const place of places) {
      const kind = kindOf(place, theirs.ids);
      // The cursors of these lists have more than an id.
      const hasOther =
        place.name === 'cursor' && /\/(deliveries|ordering-keys)$/.test(place.operation.path);
      if (!kind || hasOther) continue;
      const [id, random] = [theirs.ids[kind], unknownLike(theirs.ids[kind])];
      const [answer, expected] = [await ask(place, id), await ask(place, random)];
      const { method, path } = place.operation;
      const name = `${method} ${path} ${place.where} ${place.name}`;
      expect([name, comparable(answer, id)]).toEqual([name, comparable(expected, random)]);
      const isFilter = place.where === 'query' && answer.status === 200;
      // A skip names a delivery, and refuses each that is not the head of the key.
      const isOtherHead = path.endsWith('/skip') && answer.body.code === 'not_blocked';
      expect([name, isFilter || isOtherHead ? 404 : answer.status]).toEqual([name, 404]);
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
