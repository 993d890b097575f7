import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { readStackDir } from '../deploy/local/settings.ts';

/** The Posthorn under load, as an API client sees it. */
export interface Target {
  createWebhooks: (urls: readonly string[]) => Promise<string[]>;
  /** Answers the message's id, or null when it was not accepted. */
  send: (webhookId: string) => Promise<string | null>;
}

const PAYLOAD_BYTES = 1_024;
const MAX_CONNECTIONS = 256;

export function readTarget(): Target {
  const path = join(readStackDir(process.env), 'credentials.json');
  const { baseUrl, apiKey } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>;
  const agent = new Agent({ connections: MAX_CONNECTIONS });
  const payload = JSON.stringify({ text: 'x'.repeat(PAYLOAD_BYTES - 11) });

  async function post(to: string, body: string): Promise<{ status: number; data: { id: string } }> {
    const headers = { 'x-api-key': apiKey ?? '', 'content-type': 'application/json' };
    const url = `${baseUrl ?? ''}${to}`;
    const answer = await request(url, { method: 'POST', headers, body, dispatcher: agent });
    const { data } = (await answer.body.json()) as { data: { id: string } };
    return { status: answer.statusCode, data };
  }

  return {
    async createWebhooks(urls) {
      const project = await post('/projects', '{"name":"bench"}');
      const projectId = project.data.id;
      const app = await post('/apps', JSON.stringify({ name: 'bench', projectId }));
      const appId = app.data.id;
      const made = urls.map((url) => post('/webhooks', JSON.stringify({ url, appId })));
      return (await Promise.all(made)).map(({ data }) => data.id);
    },
    async send(webhookId) {
      const body = `{"webhookId":"${webhookId}","payload":${payload}}`;
      const { status, data } = await post('/webhook-messages', body);
      return status === 202 ? data.id : null;
    },
  };
}
