/* global btoa, crypto, Headers, Request, Response, TextEncoder */
// The test of the built package that runs in every runtime. It is plain JavaScript without a test framework, and gets
// the modules of the package, so that they may come from import or from require.

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const BODY = '{"n":1.0,"name":"é"}';
const encode = (text) => new TextEncoder().encode(text);

function equal(actual, expected) {
  const [got, wanted] = [actual, expected].map((value) => JSON.stringify(value));
  if (got !== wanted) throw new Error(`got ${got}, expected ${wanted}`);
}

const reasonOf = (verified) =>
  verified.then(
    () => 'accepted',
    (error) => error.reason ?? String(error),
  );

async function verifiesHmac({ index: { sign, verify, VerifyError } }) {
  const secrets = ['whsec_AAAA', SECRET];
  const headers = await sign({ payload: BODY, secret: SECRET, id: 'msg_1' });
  const { id, payload } = await verify({ body: encode(BODY), headers, secrets });
  equal({ id, payload }, { id: 'msg_1', payload: { n: 1, name: 'é' } });
  const own = await verify({ body: BODY, headers, secrets, serviceSignature: true });
  equal(own.id, 'msg_1');
  equal(await reasonOf(verify({ body: `${BODY} `, headers, secrets })), 'no_match');
  equal(await reasonOf(verify({ body: {}, headers, secrets })), 'body_was_parsed');
  const error = await verify({ body: '', headers, secrets }).catch((thrown) => thrown);
  equal(error instanceof VerifyError, true);
}

async function verifiesEd25519({ index: { verify } }) {
  const { privateKey, publicKey } = await crypto.subtle.generateKey('Ed25519', true, [
    'sign',
    'verify',
  ]);
  const jwk = { ...(await crypto.subtle.exportKey('jwk', publicKey)), kid: 'skey_1', alg: 'EdDSA' };
  const seconds = Math.floor(Date.now() / 1_000);
  const content = encode(`msg_1.${seconds}.${BODY}`);
  const signature = new Uint8Array(await crypto.subtle.sign('Ed25519', privateKey, content));
  const headers = new Headers({
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1a,${btoa(String.fromCharCode(...signature))}`,
  });
  let requests = 0;
  const options = {
    headers,
    jwksUrl: 'https://sender.example/keys',
    fetch: async () => {
      requests += 1;
      return Response.json({ keys: [jwk] }, { headers: { 'cache-control': 'max-age=300' } });
    },
  };
  const verified = await Promise.all([1, 2].map(() => verify({ ...options, body: BODY })));
  equal([verified.map(({ id }) => id), requests], [['msg_1', 'msg_1'], 1]);
  equal(await reasonOf(verify({ ...options, body: '{}' })), 'no_match');
}

async function requestOf({ sign }, changes = {}) {
  const headers = await sign({ payload: BODY, secret: SECRET, id: 'msg_1' });
  const init = { method: 'POST', headers: { ...headers, ...changes }, body: BODY };
  return new Request('https://receiver.example/hook', init);
}

async function receivesRequests({ index, fetch: { receiveWebhooks } }) {
  const receive = receiveWebhooks({ secrets: [SECRET] }, ({ payload }) => Response.json(payload));
  equal(await (await receive(await requestOf(index))).json(), { n: 1, name: 'é' });
  equal((await receive(await requestOf(index, { 'webhook-id': 'msg_2' }))).status, 401);
  const used = await requestOf(index);
  await used.text();
  equal((await receive(used)).status, 500);
}

/** With no more of Hono than its context. */
async function receivesWithHono({ index, hono: { verifyWebhook, webhookOf } }) {
  const context = { req: { raw: await requestOf(index) } };
  const receive = verifyWebhook({ secrets: [SECRET] });
  await receive(context, async () => {
    equal(webhookOf(context).id, 'msg_1');
    equal(await context.req.raw.text(), BODY);
  });
  const forged = { req: { raw: await requestOf(index, { 'webhook-id': 'msg_2' }) } };
  equal((await receive(forged, () => Promise.reject(new Error('handled')))).status, 401);
}

/** As connect does it, on Node's own server. Workers have none. */
async function receivesWithExpress({ index, express: { verifyWebhook, webhookOf }, http }) {
  const receive = verifyWebhook({ secrets: [SECRET] });
  const server = http.createServer((request, response) => {
    receive(request, response, (error) => {
      response.end(error ? String(error) : JSON.stringify(webhookOf(request).payload));
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const send = async (changes) => {
    const { headers } = await requestOf(index, changes);
    const url = `http://127.0.0.1:${server.address().port}/`;
    return fetch(url, { method: 'POST', headers, body: BODY });
  };
  try {
    equal(await (await send({})).json(), { n: 1, name: 'é' });
    equal((await send({ 'webhook-id': 'msg_2' })).status, 401);
  } finally {
    server.close();
    server.closeAllConnections?.();
  }
}

async function loadsFastify({ fastify: { verifyWebhook } }) {
  const scope = { removeAllContentTypeParsers() {}, addContentTypeParser() {}, addHook() {} };
  await verifyWebhook({ secrets: [SECRET] })(scope);
}

/**
 * Throws at the first failure; returns how many tests ran. `modules` has each entry of the package by its name, and
 * `http`, Node's module where there is one.
 */
export async function testPackage(modules) {
  const tests = [
    verifiesHmac,
    verifiesEd25519,
    receivesRequests,
    receivesWithHono,
    loadsFastify,
    ...(modules.http ? [receivesWithExpress] : []),
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
