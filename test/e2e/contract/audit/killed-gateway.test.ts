import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { freePorts } from '../../../../tools/local-stack/machine/ports.ts';
import { createApiClient } from '../../../support/api/api-client.ts';
import { readAuditEvents } from '../../../support/api/audit-events.ts';
import { dataOf } from '../../../support/api/expect-answers.ts';
import { createResources, type ShownProject } from '../../../support/api/resources.ts';
import { killHard, type OwnCompany } from '../../../support/process/posthorn.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';
import { startStoreProxy, type StoreProxy } from '../../../support/process/store-proxy.ts';
import { eventually } from '../../../support/time/eventually.ts';

/** Of each command: more than it takes to see a change and to kill the gateway that made it. */
const DELAY_MS = 2_000;

describe('A gateway that is killed after a change [security]', () => {
  let posthorn: OwnCompany;
  let proxy: StoreProxy;

  beforeAll(async () => {
    posthorn = await joinShared('contract');
    proxy = await startStoreProxy(posthorn.env.MONGODB_URL);
  }, 120_000);

  afterAll(async () => {
    await proxy.close();
    await posthorn.stop();
  }, 60_000);

  it('leaves an event that is started and shows what was asked for', async () => {
    const { api, apiKey } = posthorn;
    const { id } = await createResources(api).project({ name: 'Old' });
    const [port = 0] = await freePorts(1);
    const settings = { MONGODB_URL: proxy.url, PORT: String(port) };
    const gateway = await posthorn.start('gateway', settings);
    const slow = createApiClient(`http://127.0.0.1:${port}`, apiKey);
    proxy.delay(DELAY_MS);
    const sent = slow.put(`/projects/${id}`, { name: 'New' });
    const ended = sent.catch(() => undefined);
    await eventually('the change', async () => {
      const { name } = dataOf<ShownProject>(await api.get(`/projects/${id}`));
      return name === 'New';
    });
    // With all that is on its way to the store.
    await Promise.all([proxy.close(), killHard(gateway)]);
    await ended;
    const [event] = await readAuditEvents(api, { targetId: id, action: 'project.updated' });
    expect(event).toMatchObject({
      outcome: 'started',
      completedAt: null,
      changes: [{ field: 'name', before: null, after: 'New' }],
    });
  });
});
