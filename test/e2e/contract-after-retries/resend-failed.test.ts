import { beforeAll, describe, expect, it } from '@jest/globals';
import {
  anId,
  aTime,
  dataOf,
  expectFailure,
  expectInvalid,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import type { ShownDelivery } from '../../support/api/resources.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { failing } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

describe('Resend · POST /api/v1/webhooks/{id}/resend-failed', () => {
  interface ShownResend {
    id: string;
    status: string;
    total: number;
    succeeded: number;
    failed: number;
  }

  const { posthorn, make } = useCompany('contract-after-retries');
  const receiver = useReceiver();

  const disable = async (id: string, disabled: boolean) =>
    dataOf(await posthorn.api.put(`/webhooks/${id}`, { disabled }));

  /** Sends messages that fail to a webhook; returns their deliveries, all exhausted. */
  async function exhausted(webhookId: string, count = 1): Promise<ShownDelivery[]> {
    receiver.answerWith(failing(99));
    const made = await Promise.all(
      Array.from({ length: count }, () => make.message({ webhookId })),
    );
    const ids = made.map(({ deliveries }) => String(deliveries[0]?.id));
    return Promise.all(ids.map((id) => make.deliveryOnce('exhausted', id)));
  }

  const start = (id: string, body: object) =>
    posthorn.api.post(`/api/v1/webhooks/${id}/resend-failed`, body);
  const done = (id: string): Promise<ShownResend> =>
    eventually('done', async () => {
      const shown = dataOf<ShownResend>(await posthorn.api.get(`/api/v1/resends/${id}`));
      return shown.status === 'done' ? shown : null;
    });

  it('runs once at a time for a webhook', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const [first] = await exhausted(webhookId);
    // The endpoint keeps the resend under way until a second one was asked for.
    let answer: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => (answer = resolve));
    receiver.answerWith((response) => {
      void asked.then(() => response.writeHead(200).end());
    });
    const since = first?.createdAt;
    const { id } = dataOf<ShownResend>(await start(webhookId, { since }), 202);
    expectFailure(await start(webhookId, { since }), 409, 'resend_running');
    answer();
    await done(id);
    dataOf(await start(webhookId, { since }), 202);
  });

  it('resends each exhausted or cancelled delivery since that time, and shows its progress', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const [before] = await exhausted(webhookId);
    const failed = await exhausted(webhookId, 3);
    await disable(webhookId, true);
    const { deliveries } = await make.message({ webhookId });
    const cancelled = String(deliveries[0]?.id);
    // Until the dispatcher has read its record, only the message shows that it is cancelled.
    await eventually('the cancelled delivery', async () => {
      const listed = await posthorn.api.get(
        `/api/v1/webhook-messages?status=cancelled&webhookId=${webhookId}`,
      );
      return dataOf<object[]>(listed).length > 0;
    });
    await disable(webhookId, false);
    receiver.answerWith((response, { headers }, nth) => {
      const isLast = headers['webhook-id'] === failed.at(-1)?.messageId;
      response.writeHead(isLast && nth > 2 ? 500 : 200).end();
    });
    const [since = ''] = failed.map(({ createdAt }) => createdAt).sort();
    const path = `/api/v1/webhooks/${webhookId}/resend-failed/estimate?since=${since}`;
    expect(dataOf(await posthorn.api.get(path))).toEqual({ total: 4 });
    const started = dataOf<ShownResend>(await start(webhookId, { since }), 202);
    expect(started).toMatchObject({ id: anId('rsnd'), status: 'running' });
    expect(await done(started.id)).toEqual({
      id: started.id,
      appId: null,
      webhookId,
      outcome: null,
      status: 'done',
      abortAskedAt: null,
      total: 4,
      succeeded: 3,
      kind: 'resend',
      eventTypes: [],
      filter: null,
      done: 4,
      skipped: 0,
      failed: 1,
      createdAt: aTime,
      updatedAt: aTime,
    });
    const statuses = await Promise.all(
      [...failed.map(({ id }) => id), cancelled].map(
        async (id) => (await make.delivery(id)).status,
      ),
    );
    expect(statuses).toEqual(['delivered', 'delivered', 'exhausted', 'delivered']);
    expect(await make.delivery(String(before?.id))).toMatchObject({ attemptCount: 2 });
  });

  it('is refused without since, with until before since, and for an unknown owner', async () => {
    const { id } = await make.webhook({ url: receiver.url });
    const since = '2026-01-02T00:00:00.000Z';
    expectInvalid(await start(id, {}), 'since');
    expectInvalid(await start(id, { since, until: '2026-01-01T00:00:00.000Z' }), 'until');
    expectNotFound(await start('wh_unknown', { since }));
    expectNotFound(await posthorn.api.get(`/api/v1/resends/rsnd_${'0'.repeat(26)}`));
  });
});

describe('Resend · POST /api/v1/apps/{id}/resend-failed', () => {
  interface ShownResend {
    id: string;
    status: string;
  }

  const SINCE = '2026-01-02T00:00:00.000Z';

  const { posthorn, make } = useCompany('contract-after-retries');
  const receiver = useReceiver();

  /** Sends one message that fails; returns its deliveries, all exhausted. */
  async function exhausted(address: object): Promise<ShownDelivery[]> {
    receiver.answerWith(failing(99));
    const { deliveries } = await make.message(address);
    return Promise.all(deliveries.map(({ id }) => make.deliveryOnce('exhausted', id)));
  }

  const statusOf = async ({ id }: ShownDelivery) => (await make.delivery(id)).status;

  const start = (id: string, body: object) =>
    posthorn.api.post(`/api/v1/apps/${id}/resend-failed`, body);
  const done = (id: string): Promise<ShownResend> =>
    eventually('done', async () => {
      const shown = dataOf<ShownResend>(await posthorn.api.get(`/api/v1/resends/${id}`));
      return shown.status === 'done' ? shown : null;
    });

  it('resends the failed deliveries of every webhook of the app, and nothing else', async () => {
    const { id: projectId } = await make.project();
    const { id: appId } = await make.app({ projectId });
    const { id: webhookId } = await make.webhook({ url: receiver.url, appId });
    await make.webhook({ url: receiver.url, appId });
    const { id: elsewhere } = await make.webhook({ url: receiver.url });
    const global = { url: receiver.url, projectId, environmentId: 'live' };
    const { id: globalId } = await make.webhook(global);
    const mine = [...(await exhausted({ appId })), ...(await exhausted({ webhookId }))];
    const others = [
      ...(await exhausted({ webhookId: elsewhere })),
      ...(await exhausted({ webhookId: globalId })),
    ];
    receiver.answerWith((response) => response.writeHead(200).end());
    const started = dataOf<ShownResend>(await start(appId, { since: SINCE }), 202);
    expect(started).toMatchObject({ id: anId('rsnd'), status: 'running', total: 3 });
    expect(await done(started.id)).toEqual({
      id: started.id,
      appId,
      webhookId: null,
      outcome: null,
      status: 'done',
      abortAskedAt: null,
      total: 3,
      succeeded: 3,
      kind: 'resend',
      eventTypes: [],
      filter: null,
      done: 3,
      skipped: 0,
      failed: 0,
      createdAt: aTime,
      updatedAt: aTime,
    });
    expect(await Promise.all(mine.map(statusOf))).toEqual(['delivered', 'delivered', 'delivered']);
    expect(await Promise.all(others.map(statusOf))).toEqual(['exhausted', 'exhausted']);
    const { attempts } = await make.delivery(String(mine[0]?.id));
    expect(attempts.at(-1)).toMatchObject({ number: 3, resend: true, outcome: 'success' });
  });

  it('is refused without since, with until before since, and for an unknown owner', async () => {
    const { id } = await make.app();
    const until = '2026-01-01T00:00:00.000Z';
    expectInvalid(await start(id, {}), 'since');
    expectInvalid(await start(id, { since: SINCE, until }), 'until');
    expectNotFound(await start('app_unknown', { since: SINCE }));
  });

  it('does not show its parts as resends', async () => {
    const { id: appId } = await make.app();
    const { id: webhookId } = await make.webhook({ url: receiver.url, appId });
    await exhausted({ appId });
    const held: (() => void)[] = [];
    receiver.answerWith((response) => held.push(() => response.writeHead(200).end()));
    const { id } = dataOf<ShownResend>(await start(appId, { since: SINCE }), 202);
    await eventually('the attempt', () => held.length > 0);
    const part = encodeURIComponent(`${id}/${webhookId}`);
    expectNotFound(await posthorn.api.get(`/api/v1/resends/${part}`));
    for (const release of held) release();
    await done(id);
  });
});

describe('Aborted resends', () => {
  interface ShownResend {
    id: string;
    status: string;
    abortAskedAt: string | null;
    total: number;
    succeeded: number;
    failed: number;
  }

  const RESENDS = '/api/v1/resends';
  const FAILED = 5;

  const { posthorn, make } = useCompany('contract-after-retries');
  const receiver = useReceiver();
  /** One attempt a second, so a page of the resend has two deliveries. */
  let webhookId: string;
  let since: string;

  beforeAll(async () => {
    ({ id: webhookId } = await make.webhook({ url: receiver.url }));
    receiver.answerWith(failing(99));
    const made = await Promise.all(
      Array.from({ length: FAILED }, () => make.message({ webhookId })),
    );
    since = made.map(({ createdAt }) => createdAt).sort()[0] ?? '';
    for (const { deliveries } of made) {
      await make.deliveryOnce('exhausted', String(deliveries[0]?.id));
    }
    dataOf(await posthorn.api.put(`/webhooks/${webhookId}`, { rateLimitPerSecond: 1 }));
    receiver.answerWith(failing(0));
  }, 120_000);

  const start = async (): Promise<ShownResend> =>
    dataOf(await posthorn.api.post(`/api/v1/webhooks/${webhookId}/resend-failed`, { since }), 202);
  const abort = async (id: string): Promise<ShownResend> =>
    dataOf(await posthorn.api.post(`${RESENDS}/${id}/abort`, {}));
  const read = async (id: string): Promise<ShownResend> =>
    dataOf(await posthorn.api.get(`${RESENDS}/${id}`));
  const ended = (id: string): Promise<ShownResend> =>
    eventually('the end of the resend', async () => {
      const shown = await read(id);
      return shown.status === 'running' ? null : shown;
    });

  describe('Resend · POST /api/v1/resends/{id}/abort', () => {
    let resend: ShownResend;

    it('stops before the next page, counts its attempts, and is repeatable', async () => {
      const before = receiver.received.length;
      // The page does not end before its attempts do.
      const respond = receiver.hold();
      const { id } = await start();
      await eventually('the first attempt', () => receiver.received.length > before);
      expect(await abort(id)).toMatchObject({ id, abortAskedAt: aTime });
      respond(200);
      resend = await ended(id);
      const { succeeded, failed } = resend;
      expect(resend).toMatchObject({ status: 'aborted', total: FAILED, failed: 0 });
      expect(succeeded).toBeGreaterThan(0);
      expect(succeeded + failed).toBeLessThan(FAILED);
      expect(receiver.received.length - before).toBe(succeeded);
      expect(await abort(id)).toEqual(resend);
    });

    it('leaves the rest to another resend, which may begin at once', async () => {
      const next = await start();
      expect(next.total).toBe(FAILED - resend.succeeded);
      const done = await ended(next.id);
      expect(done).toMatchObject({ status: 'done', succeeded: next.total, abortAskedAt: null });
      expect(await abort(next.id)).toEqual(done);
    });

    it('is recorded in the audit log', async () => {
      const listed = await posthorn.api.get(`/api/v1/audit-events?targetId=${resend.id}`);
      expect(dataOf(listed)).toMatchObject([
        { action: 'resend.aborted', outcome: 'done', target: { kind: 'resend', id: resend.id } },
        { action: 'resend.aborted', outcome: 'done' },
      ]);
    });

    it('is 404 for a resend that does not exist', async () => {
      expectNotFound(await posthorn.api.post(`${RESENDS}/rsnd_unknown/abort`, {}));
    });
  });

  describe('Resends · GET /api/v1/resends', () => {
    it('lists the resends of a webhook, newest first, page by page', async () => {
      const path = `${RESENDS}?webhookId=${webhookId}&limit=1`;
      const { body: first } = await posthorn.api.get(path);
      const cursor = String(first.nextCursor);
      const { body: second } = await posthorn.api.get(`${path}&cursor=${cursor}`);
      expect([first.data, second.data]).toMatchObject([
        [{ webhookId, status: 'done' }],
        [{ webhookId, status: 'aborted' }],
      ]);
      expect(second.nextCursor).toBeNull();
      expect(dataOf(await posthorn.api.get(`${RESENDS}?webhookId=wh_unknown`))).toEqual([]);
    });
  });
});
