import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { NO_COMPANY } from '@posthorn/domain/audit.ts';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { dataOf, expectDeleted } from '../../../support/api/expect-answers.ts';
import { createResources, type Resources } from '../../../support/api/resources.ts';
import { createCompany, type Company } from '../../../support/process/companies.ts';
import { ADMIN, type OwnCompany } from '../../../support/process/posthorn.ts';
import { runProgram } from '../../../support/process/service-process.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';
import { failing, startReceiver, type Receiver } from '../../../support/receivers/receiver.ts';
import { readEverything } from '../../../support/stores/stored-documents.ts';
import { eventually } from '../../../support/time/eventually.ts';

type Store = Awaited<ReturnType<typeof connectMongo>>;

let posthorn: OwnCompany;
let company: Company;
let receiver: Receiver;
let make: Resources;
let store: Store;

beforeAll(async () => {
  posthorn = await joinShared('contract');
  company = await createCompany(posthorn, 'To be deleted');
  receiver = await startReceiver();
  make = createResources(company.api);
  store = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
}, 120_000);

afterAll(async () => {
  await store.close();
  await receiver.close();
  await posthorn.stop();
}, 60_000);

/** A delivered message, one that waits for its retry, resends of both kinds, and a deleted app. */
async function useEverything(): Promise<void> {
  const { id: webhookId } = await make.webhook({ url: receiver.url });
  const delivered = await make.message({ webhookId });
  const deliveryId = String(delivered.deliveries[0]?.id);
  await make.deliveryOnce('delivered', deliveryId);
  dataOf(await company.api.post(`/api/v1/deliveries/${deliveryId}/resend`, {}));
  const since = new Date(Date.now() - 60_000).toISOString();
  const all = await company.api.post(`/api/v1/webhooks/${webhookId}/resend-failed`, { since });
  dataOf(all, 202);
  receiver.answerWith(failing(99));
  const failed = await make.message({ webhookId });
  await eventually('the first failure', async () => {
    return (await make.delivery(String(failed.deliveries[0]?.id))).attemptCount === 1;
  });
  const { id: appId } = await make.app();
  const { api, companyId } = company;
  expectDeleted(await api.request('DELETE', `/apps/${appId}`, undefined, { companyid: companyId }));
}

/** The documents with the id of the company in them, by the name of their collection. */
async function documentsWith(companyId: string): Promise<Record<string, object[]>> {
  const found = Object.entries(await readEverything(store.db)).map(
    ([name, all]) =>
      [name, all.filter((each) => JSON.stringify(each).includes(companyId))] as const,
  );
  return Object.fromEntries(found.filter(([, some]) => some.length > 0));
}

const remove = async (confirm: string): Promise<object> => {
  const args = ['company', 'delete', company.companyId, '--confirm', confirm, '--json'];
  return JSON.parse(await runProgram(ADMIN, args, posthorn.env)) as object;
};

describe('The export of a company', () => {
  it('has everything of it, and an end that counts it', async () => {
    const { companyId } = company;
    await useEverything();
    const args = ['company', 'export', companyId];
    const lines = (await runProgram(ADMIN, args, posthorn.env)).trimEnd().split('\n');
    const things = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(things.at(0)).toMatchObject({ type: 'header', version: 1, companyId });
    const counts = { project: 2, app: 1, webhook: 1, apiKey: 1, message: 2, delivery: 2 };
    expect(things.at(-1)).toMatchObject({ type: 'end', counts });
    expect(lines.join()).not.toMatch(/whsec_|hash/i);
  });
});

describe('A company that is deleted [security]', () => {
  it('has no keys at once, and after two minutes no document but that of its deletion', async () => {
    const { companyId, api } = company;
    await expect(remove('comp_other')).rejects.toThrow(`give --confirm ${companyId}.`);
    dataOf(await api.get('/webhooks'));

    expect(await remove(companyId)).toEqual({ companyId, status: 'removing' });
    await eventually(
      'the end of its keys',
      async () => (await api.get('/webhooks')).status === 401,
    );
    const before = await documentsWith(companyId);
    expect(before).toMatchObject({ messages: [{}, {}], deliveries: [{}, {}] });
    // Two minutes pass for it.
    const companies = collection(store.db, 'companies');
    await companies.updateOne({ _id: companyId }, { $set: { suspendedAt: new Date(0) } });
    await eventually(
      'the end of the company',
      async () => {
        return (await companies.findOne({ _id: companyId })) === null;
      },
      40_000,
    );
    const deletion = { action: 'company.deleted', companyId: NO_COMPANY };
    expect(await documentsWith(companyId)).toMatchObject({ auditEvents: [deletion] });
    expect(Object.keys(await documentsWith(companyId))).toEqual(['auditEvents']);
    dataOf(await posthorn.api.get('/webhooks'));
  }, 120_000);
});
