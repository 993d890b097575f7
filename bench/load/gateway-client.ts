import { Pool, type Dispatcher } from 'undici';
import { inWorkers, type Sending } from './loops.ts';

/** The Posthorn under load, as an API client sees it. */
export type GatewayClient = ReturnType<typeof createGatewayClient>;

export interface ClientOptions {
  connections?: number;
  /** Size of a payload as JSON. */
  payloadBytes?: number;
  /** The payload of every message; by default an object of `payloadBytes` with one text. */
  payload?: object;
}

const HEADERS = { 'content-type': 'application/json' };
const PAYLOAD_BYTES = 1_024;
/** More than the closed loop uses, so that an open loop does not queue here when responses stall. */
const MAX_CONNECTIONS = 256;
/** Concurrent requests while webhooks are created. */
const CREATING_AT_ONCE = 64;

export function createGatewayClient(
  { baseUrl, apiKey }: { baseUrl: string; apiKey: string },
  { connections = MAX_CONNECTIONS, payloadBytes = PAYLOAD_BYTES, ...options }: ClientOptions = {},
) {
  const pool = new Pool(baseUrl, { connections });
  const text = 'x'.repeat(payloadBytes - '{"text":""}'.length);
  const payload = JSON.stringify(options.payload ?? { text });

  const post = (path: string, body: string, key = apiKey): Promise<Response> =>
    exchange(pool, { method: 'POST', path, headers: { ...HEADERS, 'x-api-key': key }, body });

  async function create(path: string, fields: object): Promise<string> {
    const { status, text } = await post(path, JSON.stringify(fields));
    const isCreated = status >= 200 && status < 300;
    if (!isCreated) throw new Error(`POST ${path} responded with ${status}: ${text.slice(0, 200)}`);
    return (JSON.parse(text) as { data: { id: string } }).data.id;
  }

  const createProject = (fields: { name: string; description?: string }): Promise<string> =>
    create('/projects', fields);
  return {
    createProject,
    createApp: async (): Promise<string> =>
      create('/apps', { name: 'bench', projectId: await createProject({ name: 'bench' }) }),
    /** Creates one webhook for each URL, in that order; only for the first ones when the signal aborts it. */
    async createWebhooks(
      appId: string,
      urls: readonly string[],
      signal?: AbortSignal,
      /** Further fields of the n-th webhook. */
      fieldsOf?: (n: number) => object,
    ): Promise<string[]> {
      const ids: string[] = [];
      await inWorkers(urls.length, { size: 1, atOnce: CREATING_AT_ONCE, signal }, async (n) => {
        ids[n] = await create('/webhooks', { url: urls[n], appId, ...fieldsOf?.(n) });
      });
      return ids;
    },
    ...sendersOf(post, payload),
    close: () => pool.destroy(),
  };
}

type Post = (path: string, body: string, key?: string) => Promise<Response>;

/** What sends messages that all have this payload. */
function sendersOf(post: Post, payload: string) {
  async function send(address: string, key?: string): Promise<Sending> {
    const body = `{${address},"payload":${payload}}`;
    const response = await post('/webhook-messages', body, key);
    const id = idIn(response.text);
    return response.status === 202 && id !== undefined ? { id } : refusalIn(response);
  }

  return {
    sendToWebhook: (webhookId: string, orderingKey?: string) =>
      send(`"webhookId":"${webhookId}"${fieldOf({ orderingKey })}`),
    /** Sends one message to each of these webhooks in one request. */
    async sendBatch(webhookIds: readonly string[], orderingKey?: string): Promise<Sending[]> {
      const more = fieldOf({ orderingKey });
      const messages = webhookIds.map((id) => `{"webhookId":"${id}"${more},"payload":${payload}}`);
      const body = `{"messages":[${messages.join()}]}`;
      const response = await post('/api/v1/webhook-messages/batch', body);
      if (response.status === 202) return resultsIn(response.text);
      return webhookIds.map(() => refusalIn(response));
    },
    /** Sends as the company that has this API key. */
    sendToAppAs: (key: string, appId: string, eventType?: string) =>
      send(`"appId":"${appId}"${fieldOf({ eventType })}`, key),
  };
}

/** The JSON of a further field of an object; empty without a value. */
function fieldOf(field: Readonly<Record<string, string | undefined>>): string {
  const json = JSON.stringify(field);
  return json === '{}' ? '' : `,${json.slice(1, -1)}`;
}

interface Response {
  /** 0 without a response. */
  status: number;
  text: string;
}

const refusalIn = ({ status }: Response): Sending => ({
  refusedWith: status === 0 ? 'no response' : String(status),
});

/**
 * `dispatch` takes a third of the CPU of `request`, and the generator shares two cores with the
 * services.
 */
function exchange(pool: Pool, options: Dispatcher.DispatchOptions): Promise<Response> {
  return new Promise((resolve) => {
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
        resolve({ status: 0, text: String(error) });
      },
    });
  });
}

/** A message starts with its id. Parsing each whole response would cost CPU time that the services lack. */
const idIn = (text: string): string | undefined => /"data":\{"id":"([^"]+)"/.exec(text)?.[1];

function resultsIn(text: string): Sending[] {
  const { data } = JSON.parse(text) as {
    data: { results: { messageId?: string; code?: string }[] };
  };
  return data.results.map(({ messageId, code = '' }) =>
    messageId === undefined ? { refusedWith: code } : { id: messageId },
  );
}
