/* global AbortSignal, Response */
// The test of the built package that runs in every runtime. It is plain JavaScript without a test framework, and gets
// the module of the package, so that it may come from import or from require.

const API_KEY = 'phk_a-secret-key';

function equal(actual, expected) {
  const [got, wanted] = [actual, expected].map((value) => JSON.stringify(value));
  if (got !== wanted) throw new Error(`got ${got}, expected ${wanted}`);
}

const errorOf = (promise) =>
  Promise.resolve(promise).then(
    () => null,
    (error) => error,
  );

/** A client whose requests are answered in order; a function as answer makes its own. */
function clientWith({ index: { Posthorn } }, answers, options = {}) {
  const requests = [];
  const client = new Posthorn({
    apiKey: () => Promise.resolve(API_KEY),
    baseUrl: 'https://posthorn.example/',
    fetch: async (url, init) => {
      requests.push({ url, ...init });
      const answer = answers.shift();
      return typeof answer === 'function' ? answer(init) : answer;
    },
    ...options,
  });
  return { client, requests };
}

const success = (data, more = {}) => Response.json({ success: true, message: '', data, ...more });
const failure = (status, code) =>
  Response.json(
    { success: false, message: 'No.', code },
    { status, headers: { 'retry-after': '0', 'x-request-id': 'request-1' } },
  );

async function sendsOnceByKey(modules) {
  const broken = () => Promise.reject(new TypeError('network'));
  const answers = [failure(503, 'unavailable'), broken, success({ id: 'msg_1' })];
  const { client, requests } = clientWith(modules, answers);
  const sent = client.messages.send({ appId: 'app_1', rawPayload: '{"n":1.0}' });
  const { data, response } = await sent.withResponse();
  equal([data.id, response.status], ['msg_1', 200]);
  const [{ url, method, headers, body }] = requests;
  equal([url, method], ['https://posthorn.example/api/v1/webhook-messages', 'POST']);
  equal(body, '{"appId":"app_1","payload":{"n":1.0}}');
  equal(headers.authorization, `Bearer ${API_KEY}`);
  const keys = new Set(requests.map((request) => request.headers['idempotency-key']));
  equal([requests.length, keys.size], [3, 1]);
}

async function throwsErrors(modules) {
  const { ApiError, NotFoundError, TimeoutError } = modules.index;
  const { client } = clientWith(modules, [failure(404, 'not_found')]);
  const error = await errorOf(client.apps.get('app_1'));
  equal([error instanceof NotFoundError, error instanceof ApiError], [true, true]);
  equal([error.status, error.code, error.requestId], [404, 'not_found', 'request-1']);
  const silent = ({ signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  const late = clientWith(modules, [silent], { timeoutMs: 20, maxRetries: 0 });
  equal((await errorOf(late.client.me())) instanceof TimeoutError, true);
}

async function readsLists(modules) {
  const { client, requests } = clientWith(modules, [
    success([{ id: 1 }], { nextCursor: 'b' }),
    success([], { nextCursor: 'c' }),
    success([{ id: 2 }], { nextCursor: null }),
    success([{ id: 3 }], { nextCursor: null }),
  ]);
  const ids = [];
  for await (const { id } of client.messages.list({ status: 'exhausted' })) ids.push(id);
  equal([ids, requests.length], [[1, 2], 3]);
  equal(requests[1].url.split('?')[1], 'status=exhausted&cursor=b');
  const page = await client.messages.list();
  equal(page, { items: [{ id: 3 }], nextCursor: null });
  const bounded = clientWith(modules, [success([{ id: 1 }, { id: 2 }], { nextCursor: 'b' })]);
  equal(await bounded.client.messages.list().toArray({ limit: 1 }), [{ id: 1 }]);
}

async function makesAnyRequest(modules) {
  const options = { headers: { 'X-Proxy': 'a' } };
  const { client, requests } = clientWith(modules, [success({ id: 'x_1' })], options);
  equal(await client.request('PUT', '/api/v1/future', { body: { n: 1 } }), { id: 'x_1' });
  const [{ url, method, headers, body }] = requests;
  equal([method, url, body], ['PUT', 'https://posthorn.example/api/v1/future', '{"n":1}']);
  equal([headers['x-proxy'], headers.authorization], ['a', `Bearer ${API_KEY}`]);
  equal(/^posthorn-client\/\d+\.\d+\.\d+/.test(headers['user-agent']), true);
}

/** On Node's own server, by the `fetch` of the runtime. Workers have none. */
async function callsServer({ index: { ConnectionError, Posthorn }, http }) {
  let requests = 0;
  const server = http.createServer((request, response) => {
    requests += 1;
    const { authorization } = request.headers;
    const answer = JSON.stringify({ success: true, data: { companyId: 'comp_1', authorization } });
    if (requests > 1) return response.end(answer);
    // Ends in the middle of the first answer.
    response.writeHead(200, { 'content-length': String(answer.length) });
    response.write(answer.slice(0, 10), () => response.socket.destroy());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const baseUrl = `http://127.0.0.1:${server.address().port}`;
  const client = new Posthorn({ apiKey: API_KEY, baseUrl });
  try {
    equal(await client.me(), { companyId: 'comp_1', authorization: `Bearer ${API_KEY}` });
    equal(requests, 2);
  } finally {
    server.close();
    server.closeAllConnections?.();
  }
  // A POST without a key is repeated only when the runtime's error says that the connection was refused.
  const warnings = [];
  const logger = { debug() {}, warn: (line) => warnings.push(line) };
  const refused = new Posthorn({ apiKey: API_KEY, baseUrl, maxRetries: 1, logger });
  const error = await errorOf(refused.resends.abort('rsnd_1'));
  equal([error instanceof ConnectionError, warnings.length], [true, 1]);
  equal(String(error.stack).includes(API_KEY), false);
}

async function waitsAsAsked({ requests: { parseRetryAfter, wait } }) {
  const delayMs = parseRetryAfter('0.01', Date.now());
  equal([delayMs, await wait(delayMs)], [10, undefined]);
  const error = await errorOf(wait(60_000, AbortSignal.abort(new Error('no longer'))));
  equal(error.message, 'no longer');
}

async function answersTests({ index: { Posthorn }, testing: { TestApi } }) {
  const api = new TestApi();
  const client = new Posthorn(api.options);
  api.failNext(503, 'unavailable');
  const project = await client.projects.create({ name: 'Shop' });
  const app = await client.apps.create({ name: 'Orders', projectId: project.id });
  await client.webhooks.create({ url: 'https://example.com', appId: app.id });
  const sent = await client.messages.send({ appId: app.id, payload: { n: 1 } });
  equal((await client.messages.waitUntilFinal(sent.id)).status, 'delivered');
  equal([api.requests.length, api.requests.at(-2).body.payload], [6, { n: 1 }]);
}

function hasRules({ rules: { REFUSED_HEADERS, WEBHOOK_RULES } }) {
  const { min, max } = WEBHOOK_RULES.rateLimitPerSecond;
  equal([min, max, WEBHOOK_RULES.url.isRequired], [1, 10_000, true]);
  equal(new RegExp(WEBHOOK_RULES.uid.pattern).test('customer-17'), true);
  equal(REFUSED_HEADERS.names.includes('host'), true);
}

/**
 * Throws at the first failure; returns how many tests ran. `modules` has each entry of the package by its name, and
 * `http`, Node's module where there is one.
 */
export async function testPackage(modules) {
  const tests = [
    sendsOnceByKey,
    throwsErrors,
    readsLists,
    makesAnyRequest,
    answersTests,
    waitsAsAsked,
    hasRules,
    ...(modules.http ? [callsServer] : []),
  ];
  for (const test of tests) {
    try {
      await test(modules);
    } catch (error) {
      throw new Error(`${test.name}: ${error?.message ?? error}`, { cause: error });
    }
  }
  return tests.length;
}
