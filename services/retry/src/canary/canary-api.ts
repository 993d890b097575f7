import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { openResponse } from '../open-response.ts';

const TIMEOUT_MS = 5_000;
const PAGE = 1_000;
/** By which every retry process finds the webhook that one of them has created. */
const NAME = 'Posthorn canary';

export interface CanaryWebhook {
  id: string;
  secret: string;
}

export interface CanaryApi {
  /** Finds the webhook of the canary, or creates it with a project and an app; it then has this URL. */
  openWebhook: (receiverUrl: string) => Promise<CanaryWebhook>;
  send: (webhookId: string, payload: object) => Promise<void>;
}

/** The gateway answered, and not as it should. */
export class CanaryRefusedError extends Error {
  override readonly name = 'CanaryRefusedError';
}

const createdSchema = z.object({ data: z.object({ id: z.string() }) });
const webhookSchema = z.object({
  id: z.string(),
  name: z.string(),
  url: z.string(),
  secret: z.string(),
});
const pageSchema = z.object({ data: z.array(webhookSchema) });
type ShownWebhook = z.infer<typeof webhookSchema>;

export interface CanaryApiDeps {
  gatewayUrl: string;
  apiKey: string;
  /** Ends requests when the service stops. */
  signal: AbortSignal;
}

/** A client of the gateway's front door. Each function rejects when there is no answer within five seconds. */
export function createCanaryApi({ gatewayUrl, apiKey, signal }: CanaryApiDeps): CanaryApi {
  async function call(method: string, path: string, body?: object): Promise<unknown> {
    const response = await openResponse(`${gatewayUrl}/api/v1${path}`, {
      method,
      headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
      body: body && Buffer.from(JSON.stringify(body)),
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    const answer = await text(response);
    const status = response.statusCode ?? 0;
    if (status >= 200 && status <= 299) return JSON.parse(answer);
    throw new CanaryRefusedError(`${method} ${path} was answered with ${status}`);
  }

  async function create(path: string, body: object): Promise<string> {
    return createdSchema.parse(await call('POST', path, body)).data.id;
  }

  async function find(): Promise<ShownWebhook | null> {
    for (let skip = 0; ; skip += PAGE) {
      const { data } = pageSchema.parse(await call('GET', `/webhooks?limit=${PAGE}&skip=${skip}`));
      const found = data.find(({ name }) => name === NAME);
      if (found) return found;
      if (data.length < PAGE) return null;
    }
  }

  async function createWebhook(url: string): Promise<CanaryWebhook> {
    const projectId = await create('/projects', { name: NAME });
    const appId = await create('/apps', { name: NAME, projectId });
    const created = await call('POST', '/webhooks', { name: NAME, url, appId });
    return z.object({ data: webhookSchema.pick({ id: true, secret: true }) }).parse(created).data;
  }

  return {
    async openWebhook(receiverUrl) {
      const found = await find();
      if (!found) return createWebhook(receiverUrl);
      if (found.url !== receiverUrl)
        await call('PUT', `/webhooks/${found.id}`, { url: receiverUrl });
      return found;
    },
    async send(webhookId, payload) {
      await call('POST', '/webhook-messages', { webhookId, payload });
    },
  };
}
