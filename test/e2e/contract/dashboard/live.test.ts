import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createApiClient } from '../../../support/api/api-client.ts';
import { dataOf } from '../../../support/api/expect-answers.ts';
import { cookieOf, SESSION } from '../../../support/api/session-client.ts';
import type { OwnCompany } from '../../../support/process/posthorn.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';
import { openConnection } from '../../../support/receivers/raw-connection.ts';
import { startReceiver, type Receiver } from '../../../support/receivers/receiver.ts';
import { eventually } from '../../../support/time/eventually.ts';

const LIVE = '/api/v1/live';

let posthorn: OwnCompany;
let receiver: Receiver;

beforeAll(async () => {
  posthorn = await joinShared('contract');
  receiver = await startReceiver();
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

interface Watching {
  response: Response;
  text: () => string;
  isEnded: () => boolean;
  stop: () => void;
}

async function watch(headers: Record<string, string>): Promise<Watching> {
  const controller = new AbortController();
  const { signal } = controller;
  const response = await fetch(posthorn.baseUrl + LIVE, { headers, signal });
  let text = '';
  let isEnded = false;
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk as Uint8Array);
  };
  void read()
    .catch(() => undefined)
    .finally(() => {
      isEnded = true;
    });
  return {
    response,
    text: () => text,
    isEnded: () => isEnded,
    stop: () => {
      controller.abort();
    },
  };
}

describe('The stream of attempts', () => {
  it('tells of attempts as they end, with a key and with a session', async () => {
    const nobody = createApiClient(posthorn.baseUrl, null);
    const cookie = cookieOf(await nobody.post(SESSION, { apiKey: posthorn.apiKey }));
    const watching = [
      await watch({ 'x-api-key': posthorn.apiKey }),
      await watch({ cookie, 'x-posthorn-session': '1' }),
    ];
    const { appId, webhookId } = await posthorn.api.createTarget(receiver.url);
    const sent: string[] = [];
    await eventually('news', async () => {
      sent.push((await posthorn.api.send({ appId }, { n: sent.length })).messageId);
      return watching.every(({ text }) => text().includes('event: attempt'));
    });
    for (const { response, text, stop } of watching) {
      expect(response.headers.get('content-type')).toBe('text/event-stream');
      expect(response.headers.get('cache-control')).toBe('no-store');
      const [, data = ''] = /event: attempt\ndata: (.*)\n/.exec(text()) ?? [];
      const attempt = JSON.parse(data) as { messageId: string };
      expect(attempt).toMatchObject({
        webhookId,
        appId,
        outcome: 'success',
        status: 'delivered',
        attemptNumber: 1,
      });
      expect(sent).toContain(attempt.messageId);
      stop();
    }
  });

  it('tells a key of one app nothing of another one', async () => {
    const [ours, theirs] = [
      await posthorn.api.createTarget(receiver.url),
      await posthorn.api.createTarget(receiver.url),
    ];
    const made = await posthorn.api.post('/api/v1/api-keys', { name: 'A', appId: ours.appId });
    const { key } = dataOf<{ key: string }>(made, 201);
    const { text, stop } = await watch({ 'x-api-key': key });
    await eventually('news', async () => {
      await posthorn.api.send({ appId: theirs.appId }, {});
      await posthorn.api.send({ appId: ours.appId }, {});
      return text().includes(ours.appId);
    });
    expect(text()).not.toContain(theirs.appId);
    stop();
  });

  it('ends within seconds when its key is revoked', async () => {
    const made = await posthorn.api.post('/api/v1/api-keys', { name: 'Gone' });
    const { id, key } = dataOf<{ id: string; key: string }>(made, 201);
    const watching = await watch({ 'x-api-key': key });
    expect(watching.isEnded()).toBe(false);
    dataOf(await posthorn.api.delete(`/api/v1/api-keys/${id}`));
    await eventually('the end', watching.isEnded);
  });

  it('ends when its client closes the sending side of its connection', async () => {
    const head = `GET ${LIVE} HTTP/1.1\r\nHost: a\r\nx-api-key: ${posthorn.apiKey}\r\n\r\n`;
    const { socket, until, closed } = openConnection(Number(posthorn.env.PORT), head);
    await until(/: open/);
    socket.end();
    await closed;
  });

  it('is for callers that may read', async () => {
    const made = await posthorn.api.post('/api/v1/api-keys', { name: 'W', scopes: ['keys:write'] });
    const { key } = dataOf<{ key: string }>(made, 201);
    expect((await fetch(posthorn.baseUrl + LIVE, { headers: { 'x-api-key': key } })).status).toBe(
      403,
    );
    expect((await fetch(posthorn.baseUrl + LIVE)).status).toBe(401);
    expect((await fetch(posthorn.baseUrl + LIVE, { method: 'POST' })).status).toBe(405);
  });
});
