import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { type ApiAnswer, type ApiClient, createApiClient } from '../../support/api/api-client.ts';
import { dataOf, expectFailure } from '../../support/api/expect-answers.ts';
import {
  createResources,
  type Resources,
  type ShownMessage,
  type ShownWebhook,
} from '../../support/api/resources.ts';
import { type Company, createCompany } from '../../support/process/companies.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import {
  joinShared,
  joinWithGateway,
  joinWithGatewayProcess,
  type OwnGateway,
} from '../../support/process/shared-posthorn.ts';
import { MEMORY_FLAGS, watchMemory } from '../../support/process/watch-memory.ts';
import {
  ENVELOPE,
  openConnection,
  parseAnswer,
  type RawConnection,
} from '../../support/receivers/raw-connection.ts';

const COMPANY_LIMIT = 20;
const ADDRESS_LIMIT = 30;

describe('Rate limits while Redis cannot be reached [security]', () => {
  let posthorn: OwnGateway;

  beforeAll(async () => {
    const [closedPort = 0] = await freePorts(1);
    posthorn = await joinWithGateway('contract', {
      REDIS_URL: `rediss://127.0.0.1:${closedPort}`,
      RATE_LIMIT_COMPANY_PER_MINUTE: String(COMPANY_LIMIT),
      RATE_LIMIT_ADDRESS_PER_MINUTE: String(ADDRESS_LIMIT),
      TRUSTED_PROXIES: '1',
    });
  }, 120_000);

  afterAll(() => posthorn.stop());

  /** Sends requests until one is refused, at most twice the limit; returns all responses. */
  async function exhaust(limit: number, send: () => Promise<ApiAnswer>): Promise<ApiAnswer[]> {
    const answers: ApiAnswer[] = [];
    while (answers.length < 2 * limit && answers.at(-1)?.status !== 429) answers.push(await send());
    return answers;
  }

  const from = (address: string, headers: Record<string, string> = {}) =>
    posthorn.api.request('GET', '/webhooks', undefined, {
      'x-forwarded-for': address,
      ...headers,
    });

  it('count all requests of a company, whatever address they come from, and none of another company', async () => {
    let n = 0;
    const answers = await exhaust(COMPANY_LIMIT, () => from(`192.0.2.${(n += 1)}`));
    const last = answers.at(-1);
    expect(answers.length).toBeGreaterThan(COMPANY_LIMIT);
    expect(last?.status).toBe(429);
    expect(last?.body).toMatchObject({ success: false, code: 'rate_limited' });
    expect(last?.headers.get('ratelimit-policy')).toBe(`"company";q=${COMPANY_LIMIT};w=60`);
    expect(last?.headers.get('ratelimit')).toMatch(/^"company";r=0;t=\d+$/);
    expect(last?.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);

    const { apiKey } = await createCompany(posthorn, 'Other');
    const other = await createApiClient(posthorn.baseUrl, apiKey).get('/webhooks');
    expect(other.status).toBe(200);
    expect(other.headers.get('ratelimit')).toBe(
      `"company";r=${COMPANY_LIMIT - 1};t=${/t=(\d+)/.exec(other.headers.get('ratelimit') ?? '')?.[1] ?? ''}`,
    );
  });

  it('count the requests of an address before its key is checked, and trust one proxy only', async () => {
    const wrong = { 'x-api-key': 'wrong' };
    // What the client itself wrote stands further left. The proxy writes its port, which is another one each time.
    let n = 0;
    const send = () => from(`203.0.113.${(n += 1)}, 198.51.100.1:${40_000 + n}`, wrong);
    const answers = await exhaust(ADDRESS_LIMIT, send);
    expect(answers.length).toBeGreaterThan(ADDRESS_LIMIT);
    expect(answers.at(-1)?.body.code).toBe('rate_limited');
    expect(answers.slice(0, -1).every(({ status }) => status === 401)).toBe(true);
    expect((await from('198.51.100.2:40001', wrong)).status).toBe(401);
  });
});

describe('Quotas [security]', () => {
  const QUOTAS = {
    QUOTA_PROJECTS_PER_COMPANY: '2',
    QUOTA_APPS_PER_COMPANY: '3',
    QUOTA_WEBHOOKS_PER_APP: '120',
    QUOTA_GLOBAL_WEBHOOKS_PER_PROJECT: '1',
    QUOTA_EVENT_TYPES_PER_PROJECT: '1',
    // One is the test's own.
    QUOTA_KEYS_PER_COMPANY: '2',
    QUOTA_TARGETS_PER_MESSAGE: '119',
  };

  let posthorn: OwnGateway;
  let make: Resources;

  beforeAll(async () => {
    posthorn = await joinWithGateway('contract', QUOTAS);
    make = createResources(posthorn.api);
  }, 120_000);

  afterAll(() => posthorn.stop());

  async function expectRefused(path: string, body: object, setting: keyof typeof QUOTAS) {
    const message = await refusalOf(path, body);
    expect(message).toContain(`The limit is ${QUOTAS[setting]} `);
    expect(message).toContain(`(${setting})`);
  }

  async function refusalOf(path: string, body: object): Promise<unknown> {
    const answer = await posthorn.api.post(path, body);
    expectFailure(answer, 409, 'quota_exceeded');
    return answer.body.message;
  }

  /** The widest that a webhook may have: 8,192 bytes with the names. */
  const WIDEST = [
    { key: 'X-Wide-1', value: 'v'.repeat(4_088) },
    { key: 'X-Wide-2', value: 'v'.repeat(4_088) },
  ];
  const url = 'http://127.0.0.1:1/hook';

  let projectId: string;
  let appId: string;
  let webhooks: ShownWebhook[];

  beforeAll(async () => {
    ({ id: projectId } = await make.project());
    await make.project();
    ({ id: appId } = await make.app({ projectId }));
    webhooks = [];
    while (webhooks.length < 120) {
      const several = Array.from({ length: 10 }, () =>
        make.webhook({ appId, url, customHeaders: WIDEST }),
      );
      webhooks.push(...(await Promise.all(several)));
    }
  });

  it('refuse one more project, app, API key, webhook, global webhook and event type', async () => {
    await expectRefused('/projects', { name: 'One more' }, 'QUOTA_PROJECTS_PER_COMPANY');
    await make.app({ projectId });
    await make.app({ projectId });
    await expectRefused('/apps', { name: 'One more', projectId }, 'QUOTA_APPS_PER_COMPANY');
    await posthorn.api.post('/api/v1/api-keys', { name: 'Second' });
    await expectRefused('/api/v1/api-keys', { name: 'Third' }, 'QUOTA_KEYS_PER_COMPANY');
    await expectRefused('/webhooks', { appId, url }, 'QUOTA_WEBHOOKS_PER_APP');
    const global = { projectId, environmentId: 'live', url };
    await make.webhook(global);
    await expectRefused('/webhooks', global, 'QUOTA_GLOBAL_WEBHOOKS_PER_PROJECT');
    const eventTypes = `/api/v1/projects/${projectId}/event-types`;
    dataOf(await posthorn.api.post(eventTypes, { name: 'first' }), 201);
    await expectRefused(eventTypes, { name: 'second' }, 'QUOTA_EVENT_TYPES_PER_PROJECT');
  });

  it('refuse one more link to the portal of an app, until one is revoked', async () => {
    const path = `/api/v1/apps/${appId}/portal-links`;
    const link = { expiresInSeconds: 600, capabilities: ['view'] };
    const first = dataOf<{ id: string }>(await posthorn.api.post(path, link), 201);
    for (let made = 1; made < 1_000; made += 27) {
      const some = Array.from({ length: 27 }, () => posthorn.api.post(path, link));
      for (const answer of await Promise.all(some)) dataOf(answer, 201);
    }
    expect(await refusalOf(path, link)).toBe('The limit is 1000 links to its portal for each app.');
    dataOf(await posthorn.api.delete(`/api/v1/portal-links/${first.id}`));
    dataOf(await posthorn.api.post(path, link), 201);
  });

  it('refuse a message to more webhooks than it may have, until one is removed', async () => {
    const message = { appId, payload: {} };
    await expectRefused('/webhook-messages', message, 'QUOTA_TARGETS_PER_MESSAGE');
    const [first, ...others] = webhooks;
    await posthorn.api.delete(`/webhooks/${first?.id ?? ''}`);
    const { deliveries, headers } = await make.message(message);
    expect(deliveries.map(({ webhookId }) => webhookId)).toEqual(others.map(({ id }) => id).sort());
    expect(headers).toEqual(expect.arrayContaining(WIDEST));
    webhooks = others;
    expect(await make.webhook({ appId, url })).toMatchObject({ url });
  });

  it('refuse a byte more of custom headers, at creation and in a change', async () => {
    const [webhook] = webhooks;
    const [wide] = WIDEST;
    const customHeaders = [...WIDEST.slice(1), { key: 'X-Wide-1b', value: wide?.value }];
    const put = await posthorn.api.put(`/webhooks/${webhook?.id ?? ''}`, { customHeaders });
    expectFailure(put, 409, 'quota_exceeded');
    const post = { projectId, environmentId: 'live', url, customHeaders };
    expect(await refusalOf('/webhooks', post)).toBe(
      'The limit is 8192 bytes of custom headers for each webhook.',
    );
  });

  it('leave a list of the widest webhooks whole and in order', async () => {
    const listed = dataOf<ShownWebhook[]>(await posthorn.api.get(`/webhooks?appId=${appId}`));
    expect(listed.length).toBe(120);
    const ids = listed.map(({ id }) => id);
    expect(ids).toEqual([...ids].sort());
    expect(listed.slice(0, 119).every(({ customHeaders }) => customHeaders.length === 2)).toBe(
      true,
    );
  });
});

describe('A message to hundreds of webhooks', () => {
  /** More than the gateway describes and sends in one piece. */
  const WEBHOOKS = 501;
  const AT_ONCE = 25;

  let posthorn: OwnCompany;
  let appId: string;
  let webhookIds: string[];

  beforeAll(async () => {
    posthorn = await joinShared('contract');
    const make = createResources(posthorn.api);
    ({ id: appId } = await make.app());
    webhookIds = [];
    while (webhookIds.length < WEBHOOKS) {
      const count = Math.min(AT_ONCE, WEBHOOKS - webhookIds.length);
      // Disabled: their deliveries are cancelled at once, and nothing is sent.
      const fields = { appId, url: 'http://127.0.0.1:9/hook', disabled: true };
      const made = await Promise.all(Array.from({ length: count }, () => make.webhook(fields)));
      webhookIds.push(...made.map(({ id }) => id));
    }
  }, 120_000);

  async function send(key: string): Promise<{ text: string; replayed: string | null }> {
    const response = await fetch(`${posthorn.baseUrl}/webhook-messages`, {
      method: 'POST',
      headers: {
        'x-api-key': posthorn.apiKey,
        'content-type': 'application/json',
        'idempotency-key': key,
      },
      body: JSON.stringify({ appId, payload: { text: '"deliveries":[' } }),
    });
    expect([response.status, response.headers.get('content-type')]).toEqual([
      ...[202, 'application/json; charset=utf-8'],
    ]);
    return { text: await response.text(), replayed: response.headers.get('idempotency-replayed') };
  }

  it('is answered with all of its deliveries, and byte for byte again when it is repeated', async () => {
    const key = randomUUID();
    const first = await send(key);
    const { message, data } = JSON.parse(first.text) as { message: string; data: ShownMessage };
    expect(message).toBe('Message accepted');
    expect(data.deliveries.map(({ webhookId }) => webhookId)).toEqual(webhookIds.sort());
    expect(new Set(data.deliveries.map(({ status }) => status))).toEqual(new Set(['cancelled']));
    const stored = dataOf<ShownMessage>(
      await posthorn.api.get(`/api/v1/webhook-messages/${data.id}`),
    );
    expect(data.deliveries).toEqual(stored.deliveries);
    expect(await send(key)).toEqual({ text: first.text, replayed: 'true' });
  });
});

describe('A company that takes all it can get', () => {
  const WEBHOOKS = 300;
  const PART_OF_CREATION = 20;
  /** 8 KiB of custom headers and 11 kB of event types: 21 kB for each webhook in a list. */
  const CUSTOM_HEADERS = ['X-Wide-1', 'X-Wide-2'].map((key) => ({ key, value: 'v'.repeat(3_900) }));
  const EVENT_TYPES = Array.from({ length: 100 }, (_, n) => `t${n}.${'e'.repeat(110)}`);

  let posthorn: OwnGateway;
  let greedy: ApiClient;
  let other: Company;
  let appId: string;

  const times = <T>(count: number, run: (n: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: count }, (_, n) => run(n)));

  async function createWidest(n: number): Promise<void> {
    const url = `http://127.0.0.1:19999/${n}`;
    const eventTypes = n % 2 === 0 ? EVENT_TYPES : [];
    const fields = { url, appId, customHeaders: CUSTOM_HEADERS, eventTypes };
    const { status } = await greedy.post('/webhooks', fields);
    expect(status).toBe(201);
  }

  /** Statuses and codes, each once. */
  function kindsOf(answers: readonly ApiAnswer[]): string[] {
    const kinds = answers.map(({ status, body }) => [status, body.code].join(' ').trim());
    return [...new Set(kinds)].sort();
  }

  beforeAll(async () => {
    posthorn = await joinWithGatewayProcess('contract', {
      NODE_OPTIONS: '--max-old-space-size=256',
    });
    greedy = posthorn.api;
    other = await createCompany(posthorn, 'Other');
    ({ appId } = await greedy.createTarget('http://127.0.0.1:19999/first'));
    for (let from = 0; from < WEBHOOKS; from += PART_OF_CREATION) {
      await times(PART_OF_CREATION, (n) => createWidest(from + n));
    }
  }, 120_000);

  afterAll(() => posthorn.stop());

  it('does not delay the others: ten requests are answered before its long lists are', async () => {
    let listed = 0;
    const lists = times(6, async () => {
      const answer = await greedy.get('/webhooks?limit=1000');
      listed += 1;
      return answer;
    });
    for (let n = 0; n < 10; n += 1) {
      expect((await other.api.get('/webhooks')).status).toBe(200);
    }
    expect(listed).toBe(0);
    expect(kindsOf(await lists)).toEqual(['200']);
  });

  it('gets 503 when the gateway has no more memory for it, while others are served', async () => {
    const payload = { text: 'x'.repeat(250_000) };
    const target = await other.api.createTarget('http://127.0.0.1:19999/other');
    const demands = Promise.all([
      times(60, () => greedy.get('/webhooks?limit=1000')),
      times(60, () => greedy.post('/webhook-messages', { appId, payload })),
      times(20, () => greedy.get('/api/v1/webhook-messages?limit=100')),
    ]);
    const sent = await times(30, () =>
      other.api.post('/webhook-messages', { webhookId: target.webhookId, payload: {} }),
    );
    expect(kindsOf(sent)).toEqual(['202']);

    const [lists, messages, pages] = await demands;
    expect(['200', '503 unavailable']).toEqual(expect.arrayContaining(kindsOf(lists)));
    expect(['202', '503 unavailable']).toEqual(expect.arrayContaining(kindsOf(messages)));
    expect(['200', '503 unavailable']).toEqual(expect.arrayContaining(kindsOf(pages)));
    expect(kindsOf([...lists, ...messages])).toContain('503 unavailable');
    expect(posthorn.gateway.isRunning()).toBe(true);
  });
});

/** One buffer for each chunk were 341 MiB for the sign-ins alone. Ten runs on a busy machine gave 1 to 9 MiB. */
const MAX_GROWTH_MIB = 40;
const SIGN_INS = 200;
const LARGE_BODIES = 8;
/** Half of 4 MiB, at 4 KiB for the request and as much for its body. */
const SIGN_INS_OF_ONE_ADDRESS = 256;

/** Chunks with so many bytes in each, without the one that ends a body. */
const chunks = (bytes: number, times: number): string =>
  `${bytes}\r\n${'x'.repeat(bytes)}\r\n`.repeat(times);

describe('What clients send in many small chunks [security]', () => {
  let posthorn: OwnGateway;
  let opened: RawConnection[];

  beforeAll(async () => {
    opened = [];
    // All requests of this test come from one address.
    posthorn = await joinWithGatewayProcess('contract', {
      ...MEMORY_FLAGS,
      WRONG_KEYS_PER_MINUTE: '0',
      REDIS_PREFIX: 'tsmall-chunks:',
    });
  }, 120_000);

  afterAll(async () => {
    for (const { socket } of opened) socket.destroy();
    await posthorn.stop();
  });

  const port = (): number => Number(new URL(posthorn.baseUrl).port);

  function post(path: string, headers: readonly string[], body: string): RawConnection {
    const lines = [
      `POST ${path} HTTP/1.1`,
      'Host: a',
      'Content-Type: application/json',
      ...headers,
    ];
    const connection = openConnection(port(), `${lines.join('\r\n')}\r\n\r\n`);
    connection.socket.write(body);
    opened.push(connection);
    return connection;
  }

  const signIn = (headers: readonly string[], body: string): RawConnection =>
    post('/dashboard/api/session', headers, body);

  async function expectService(): Promise<void> {
    const { status } = await posthorn.api.get('/webhooks');
    expect(status).toBe(200);
  }

  async function answersOf(connections: readonly RawConnection[]): Promise<Set<string>> {
    const texts = await Promise.all(connections.map(({ until }) => until(ENVELOPE)));
    return new Set(texts.map(parseAnswer).map(({ status, body }) => `${status} ${body.code}`));
  }

  async function attack(): Promise<void> {
    const chunked = 'Transfer-Encoding: chunked';
    const signIns = Array.from({ length: SIGN_INS }, () => signIn([chunked], chunks(1, 4_095)));
    const bodies = Array.from({ length: LARGE_BODIES }, () =>
      post('/webhook-messages', [chunked, `X-Api-Key: ${posthorn.apiKey}`], chunks(1, 262_143)),
    );
    expect(await answersOf([...signIns, ...bodies])).toEqual(new Set(['400 chunks_too_small']));
  }

  it('costs no memory for 200 half-sent sign-ins and eight bodies of 256 KiB, a byte in each chunk', async () => {
    // Node makes a buffer for each chunk. V8 keeps the memory of such garbage after the first attack and uses it again.
    await attack();
    const memory = await watchMemory(posthorn.gateway);
    await attack();
    await expectService();
    expect(await memory.grownMib()).toBeLessThan(MAX_GROWTH_MIB);
  }, 240_000);

  it('costs no memory in chunks of four bytes, until the sign-ins time out after 5 s', async () => {
    const memory = await watchMemory(posthorn.gateway);
    const signIns = Array.from({ length: SIGN_INS }, () =>
      signIn(['Transfer-Encoding: chunked'], chunks(4, 1_023)),
    );
    await expectService();
    expect(await answersOf(signIns)).toEqual(new Set(['408 request_timeout']));
    expect(await memory.grownMib()).toBeLessThan(MAX_GROWTH_MIB);
  });

  it('gets 503 beyond the share of an address, while requests with a key get their response', async () => {
    const length = ['Content-Length: 4096'];
    const held = Array.from({ length: SIGN_INS_OF_ONE_ADDRESS + 10 }, () => signIn(length, '{'));
    await expectService();
    // Those within the share end with 408.
    expect(await answersOf(held)).toEqual(new Set(['503 unavailable', '408 request_timeout']));
    const refused = (await Promise.all(held.map(({ until }) => until(ENVELOPE)))).filter((text) =>
      text.includes(' 503 '),
    );
    expect(refused).toHaveLength(10);
    for (const text of refused) expect(text).toMatch(/\r\nretry-after: \d/i);
  });
});
