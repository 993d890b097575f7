import { request as httpRequest } from 'undici';

/** The envelope of every answer (docs/contract.md C2). */
export interface Envelope {
  success: boolean;
  message: string;
  code?: string;
  requestId?: string;
  errors?: { path: string; message: string }[];
  // The shape of each resource is what the tests are there to check.
  // oxlint-disable-next-line typescript/no-explicit-any
  data?: any;
  nextCursor?: string | null;
}

export interface ApiAnswer {
  status: number;
  headers: Headers;
  body: Envelope;
}

interface RequestOptions {
  method: string;
  headers: Record<string, string>;
  body: string | null;
}

export interface ApiClient {
  request: (
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ) => Promise<ApiAnswer>;
  post: (path: string, body: unknown, headers?: Record<string, string>) => Promise<ApiAnswer>;
  put: (path: string, body: unknown, headers?: Record<string, string>) => Promise<ApiAnswer>;
  get: (path: string, headers?: Record<string, string>) => Promise<ApiAnswer>;
  delete: (path: string, headers?: Record<string, string>) => Promise<ApiAnswer>;
  /** Creates a project with an app and one webhook with this URL. */
  createTarget: (
    url: string,
    webhook?: object,
  ) => Promise<{ projectId: string; appId: string; webhookId: string }>;
  /** Sends a message; returns its id and the id of its first delivery. */
  send: (target: object, payload: unknown) => Promise<{ messageId: string; deliveryId: string }>;
}

/** Takes a third of the processor time of `fetch`, and tests send many thousand requests. */
async function answerOf(url: string, options: RequestOptions): Promise<ApiAnswer> {
  const { statusCode, headers, text } = await exchange(url, options).catch((cause: unknown) => {
    throw new Error(`no whole answer to ${options.method} ${url}`, { cause });
  });
  return { status: statusCode, headers: new Headers(headers), body: JSON.parse(text) as Envelope };
}

async function exchange(url: string, options: RequestOptions) {
  const { statusCode, headers, body } = await httpRequest(url, options);
  return { statusCode, headers: headers as Record<string, string>, text: await body.text() };
}

function bodyText(body: unknown): string | null {
  if (body === undefined) return null;
  return typeof body === 'string' ? body : JSON.stringify(body);
}

/**
 * Calls the gateway as a client does. Sends a string body unchanged, and the headers `always` with each request. Takes
 * null for requests without a key.
 */
export function createApiClient(
  baseUrl: string,
  apiKey: string | null,
  always: Record<string, string> = {},
): ApiClient {
  const key = apiKey === null ? {} : { 'x-api-key': apiKey };
  async function request(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<ApiAnswer> {
    return answerOf(baseUrl + path, {
      method,
      headers: { ...key, 'content-type': 'application/json', ...always, ...headers },
      body: bodyText(body),
    });
  }
  const post: ApiClient['post'] = (path, body, headers) => request('POST', path, body, headers);

  async function created(path: string, body: object): Promise<{ id: string }> {
    const answer = await post(path, body);
    if (answer.status !== 201) throw new Error(`POST ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body.data as { id: string };
  }

  return {
    request,
    post,
    put: (path, body, headers) => request('PUT', path, body, headers),
    get: (path, headers) => request('GET', path, undefined, headers),
    delete: (path, headers) => request('DELETE', path, undefined, headers),
    async createTarget(url, webhook = {}) {
      const { id: projectId } = await created('/projects', { name: 'Project' });
      const { id: appId } = await created('/apps', { name: 'App', projectId });
      const { id: webhookId } = await created('/webhooks', { url, appId, ...webhook });
      return { projectId, appId, webhookId };
    },
    async send(target, payload) {
      const { status, body } = await post('/webhook-messages', { ...target, payload });
      if (status !== 202) throw new Error(`message refused: ${JSON.stringify(body)}`);
      const data = body.data as { id: string; deliveries: { id: string }[] };
      return { messageId: data.id, deliveryId: data.deliveries[0]?.id ?? '' };
    },
  };
}
