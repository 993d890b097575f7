import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { dataOf, expectFailure } from '../../../support/api/expect-answers.ts';
import { createResources, type Resources } from '../../../support/api/resources.ts';
import { ADMIN, type OwnCompany } from '../../../support/process/posthorn.ts';
import { runProgram } from '../../../support/process/service-process.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';
import { startReceiver, type Receiver } from '../../../support/receivers/receiver.ts';
import { eventually } from '../../../support/time/eventually.ts';

let posthorn: OwnCompany;
let receiver: Receiver;
let make: Resources;

beforeAll(async () => {
  posthorn = await joinShared('contract');
  receiver = await startReceiver();
  make = createResources(posthorn.api);
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

async function admin(command: 'suspend' | 'resume'): Promise<object> {
  const args = ['company', command, posthorn.companyId, '--json'];
  return JSON.parse(await runProgram(ADMIN, args, posthorn.env)) as object;
}

/** At five a second the backlog lasts for longer than the suspension takes to be known. */
const MESSAGES = 100;
const PER_SECOND = 5;
const QUIET_MS = 2_000;

describe('A company that is suspended [security]', () => {
  it('is refused and gets nothing delivered; once it is resumed it gets all of it, once', async () => {
    const { companyId, api } = posthorn;
    const { id } = await make.webhook({ url: receiver.url });
    const limit = (rateLimitPerSecond: number | null) =>
      api.put(`/webhooks/${id}`, { rateLimitPerSecond });
    dataOf(await limit(PER_SECOND));
    for (let n = 0; n < MESSAGES; n += 1) await make.message({ webhookId: id });
    await eventually('the first delivery', () => receiver.received.length > 0);

    expect(await admin('suspend')).toEqual({ companyId, status: 'suspended' });
    await eventually('refused', async () => (await api.get('/webhooks')).status === 403);
    expectFailure(await api.get('/webhooks'), 403, 'company_suspended');
    expectFailure(await api.post('/webhooks', {}), 403, 'company_suspended');
    await eventually('quiet', () => {
      const last = receiver.received.at(-1);
      return last && Date.now() - last.atMs > QUIET_MS;
    });
    expect(receiver.received.length).toBeLessThan(MESSAGES);

    expect(await admin('resume')).toEqual({ companyId, status: 'active' });
    await eventually('taken again', async () => (await limit(null)).status === 200);
    await eventually('all', () => receiver.received.length >= MESSAGES);
    const ids = receiver.received.map(({ headers }) => headers['webhook-id']);
    expect([ids.length, new Set(ids).size]).toEqual([MESSAGES, MESSAGES]);
  }, 90_000);
});
