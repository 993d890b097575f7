import { beforeAll, describe, expect, it } from '@jest/globals';
import {
  placesOf,
  readOperations,
  requestWith,
  type Place,
} from '../../support/api/request-places.ts';
import { createApiClient, type ApiAnswer } from '../../support/api/api-client.ts';
import { type BlockedKey, blockKey } from '../../support/api/blocked-key.ts';
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
/** A key of ours, so that a skip is refused because of the delivery that it names. */
let blocked: BlockedKey;
let places: Place[];

beforeAll(async () => {
  receiver.answerWith(failing(99));
  const { apiKey, companyId } = posthorn;
  ours = await ownerOf(apiKey, companyId, 'ours');
  const other = await createCompany(posthorn, MARK);
  theirs = await ownerOf(other.apiKey, other.companyId, MARK);
  const { id: appId } = await createResources(ours.api).app();
  blocked = await blockKey(ours.api, appId, receiver.url);
  places = placesOf(await readOperations(posthorn.baseUrl));
}, 120_000);

async function ownerOf(apiKey: string, companyid: string, mark: string): Promise<Owner> {
  const api = createApiClient(posthorn.baseUrl, apiKey, { companyid });
  return { api, ids: await createOneOfEach(api, receiver.url, mark) };
}

async function ask(place: Place, id: string): Promise<ApiAnswer> {
  const known = place.operation.path.endsWith('/skip') ? { ...ours.ids, ...blocked } : ours.ids;
  const { method, path, body } = requestWith(place, id, known);
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
      // A skip refuses each delivery but the head of its key (docs/contract.md C29.11).
      const isHead = path.endsWith('/skip') && place.name === 'deliveryId';
      const refusal = isHead ? 409 : 404;
      expect([name, isFilter ? refusal : answer.status]).toEqual([name, refusal]);
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
