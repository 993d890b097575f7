import { Pool, type Dispatcher } from 'undici';

export type Sending = { id: string } | { refusedWith: string };

/** The Posthorn under load, as an API client sees it. */
export interface GatewayClient {
  createProject: (fields: { name: string; description?: string }) => Promise<string>;
  createApp: () => Promise<string>;
  /** Creates one webhook for each URL, in that order; only for the first ones when the signal aborts it. */
  createWebhooks: (
    appId: string,
    urls: readonly string[],
    signal?: AbortSignal,
    /** Further fields of the n-th webhook. */
    fieldsOf?: (n: number) => object,
  ) => Promise<string[]>;
  sendToWebhook: (webhookId: string) => Promise<Sending>;
  /** Sends one message to each of these webhooks in one request. */
  sendBatch: (webhookIds: readonly string[]) => Promise<Sending[]>;
  /** Sends as the company that has this API key. */
  sendToAppAs: (apiKey: string, appId: string) => Promise<Sending>;
  close: () => Promise<void>;
}

export interface ClientOptions {
  connections?: number;
  /** Size of a payload as JSON. */
  payloadBytes?: number;
}

const PAYLOAD_BYTES = 1_024;
/** More than the closed loop uses, so that an open loop does not queue here when responses stall. */
const MAX_CONNECTIONS = 256;
/** Concurrent requests while webhooks are created. */
const CREATING_AT_ONCE = 64;

export function createGatewayClient(
  { baseUrl, apiKey }: { baseUrl: string; apiKey: string },
  { connections = MAX_CONNECTIONS, payloadBytes = PAYLOAD_BYTES }: ClientOptions = {},
): GatewayClient {
  const pool = new Pool(baseUrl, { connections });
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
  const payload = JSON.stringify({ text: 'x'.repeat(payloadBytes - '{"text":""}'.length) });

  const post: Post = (path, body, as = {}) =>
    exchange(pool, { method: 'POST', path, headers: { ...headers, ...as }, body });

  async function create(path: string, fields: object): Promise<string> {
    const { status, text } = await post(path, JSON.stringify(fields));
    if (status >= 300)
      throw new Error(`POST ${path} responded with ${status}: ${text.slice(0, 200)}`);
    return (JSON.parse(text) as { data: { id: string } }).data.id;
  }

  const senders = createSenders(post, payload);
  const createProject: GatewayClient['createProject'] = (fields) => create('/projects', fields);
  return {
    createProject,
    async createApp() {
      const projectId = await createProject({ name: 'bench' });
      return create('/apps', { name: 'bench', projectId });
    },
    createWebhooks: (appId, urls, signal, fieldsOf) =>
      mapConcurrently(urls, { atOnce: CREATING_AT_ONCE, signal }, (url, n) =>
        create('/webhooks', { url, appId, ...fieldsOf?.(n) }),
      ),
    sendToWebhook: (webhookId) => senders.send(`"webhookId":"${webhookId}"`),
    sendBatch: (webhookIds) => senders.sendBatch(webhookIds),
    sendToAppAs: (apiKey, appId) => senders.send(`"appId":"${appId}"`, { 'x-api-key': apiKey }),
    close: () => pool.destroy(),
  };
}

/** Sends a request, with further headers. */
type Post = (path: string, body: string, as?: object) => Promise<{ status: number; text: string }>;

function createSenders(post: Post, payload: string) {
  return {
    async send(address: string, as?: object): Promise<Sending> {
      try {
        const body = `{${address},"payload":${payload}}`;
        const { status, text } = await post('/webhook-messages', body, as);
        const id = idIn(text);
        return status === 202 && id !== undefined ? { id } : { refusedWith: String(status) };
      } catch {
        return { refusedWith: 'no response' };
      }
    },
    async sendBatch(webhookIds: readonly string[]): Promise<Sending[]> {
      const refused = (refusedWith: string): Sending[] => webhookIds.map(() => ({ refusedWith }));
      const messages = webhookIds.map((id) => `{"webhookId":"${id}","payload":${payload}}`);
      try {
        const body = `{"messages":[${messages.join()}]}`;
        const { status, text } = await post('/api/v1/webhook-messages/batch', body);
        return status === 202 ? resultsIn(text) : refused(String(status));
      } catch {
        return refused('no response');
      }
    },
  };
}

/**
 * `dispatch` takes a third of the CPU of `request`, and the generator shares two cores with the
 * services.
 */
function exchange(
  pool: Pool,
  options: Dispatcher.DispatchOptions,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let status = 0;
    pool.dispatch(options, {
      onRequestStart: () => undefined,
      onResponseStart: (_controller, code) => {
        status = code;
      },
      onResponseData: (_controller, chunk) => {
        // A copy: the chunk is a view of the parser's memory.
        chunks.push(Buffer.from(chunk));
      },
      onResponseEnd: () => {
        resolve({ status, text: Buffer.concat(chunks).toString() });
      },
      onResponseError: (_controller, error) => {
        reject(error);
      },
    });
  });
}

/** A message starts with its id. Parsing each whole response would cost CPU time that the services lack. */
function idIn(text: string): string | undefined {
  return /"data":\{"id":"([^"]+)"/.exec(text)?.[1];
}

function resultsIn(text: string): Sending[] {
  const { data } = JSON.parse(text) as {
    data: { results: { messageId?: string; code?: string }[] };
  };
  return data.results.map(({ messageId, code = '' }) =>
    messageId === undefined ? { refusedWith: code } : { id: messageId },
  );
}

/**
 * Returns the results in the order of the inputs, with `atOnce` under way at a time. Starts nothing
 * after the signal.
 */
async function mapConcurrently<In, Out>(
  inputs: readonly In[],
  { atOnce, signal }: { atOnce: number; signal: AbortSignal | undefined },
  work: (input: In, index: number) => Promise<Out>,
): Promise<Out[]> {
  const results: Out[] = [];
  const entries = inputs.entries();
  const worker = async (): Promise<void> => {
    for (const [index, input] of entries) {
      if (signal?.aborted === true) return;
      results[index] = await work(input, index);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}
