import { describe, expect, test } from '@jest/globals';
import { createHmac } from 'node:crypto';
import { runInNewContext } from 'node:vm';
import { findDisagreement } from '../check/random-bodies.ts';
import { sign, verify, VerifyError, type VerifyInput, type VerifyReason } from './index.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const OTHER = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
const NOW_MS = 1_700_000_000_900;
const BODY = '{"n":1.0,"name":"é"}';
const nowMs = (): number => NOW_MS;
const secrets = [SECRET];

const signed = (overrides: Partial<Parameters<typeof sign>[0]> = {}) =>
  sign({
    payload: BODY,
    secret: SECRET,
    id: 'msg_1',
    timestamp: new Date(NOW_MS),
    ...overrides,
  });

/** Returns why `verify` refuses this input; fails when it does not. */
async function reasonOf(input: Partial<VerifyInput>): Promise<VerifyReason> {
  const headers = await signed();
  const error: unknown = await verify({ body: BODY, headers, secrets, nowMs, ...input }).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof VerifyError)) throw new Error(`no VerifyError: ${String(error)}`);
  return error.reason;
}

describe('a delivery with v1', () => {
  test('is verified, and its id, time, payload and bytes are returned', async () => {
    const event = await verify({ body: BODY, headers: await signed(), secrets, nowMs });
    expect(event).toEqual({
      id: 'msg_1',
      timestamp: new Date(1_700_000_000_000),
      eventType: null,
      payload: { n: 1, name: 'é' },
      rawBody: new TextEncoder().encode(BODY),
    });
  });

  test('has the type of its event, in any spelling of the header', async () => {
    const headers = { ...(await signed()), 'Webhook-Event-Type': 'order.paid' };
    const { eventType, payload } = await verify<{ n: number }>({
      body: BODY,
      headers,
      secrets,
      nowMs,
    });
    expect([eventType, payload.n]).toEqual(['order.paid', 1]);
  });

  test('agrees with the vector of the specification', async () => {
    const headers = {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    };
    const at = { nowMs: () => 1_614_265_330_000 };
    const body = '{"test": 2432232314}';
    const { payload } = await verify({ body, headers, secrets, ...at });
    expect(payload).toEqual({ test: 2_432_232_314 });
  });

  test.each([
    ['text', BODY],
    ['a Buffer', Buffer.from(BODY)],
    ['a part of a buffer', Buffer.from(`xx${BODY}yy`).subarray(2, -2)],
    ['an ArrayBuffer', new Uint8Array(Buffer.from(BODY)).buffer],
  ])('is verified with %s as its body', async (_which, body) => {
    expect((await verify({ body, headers: await signed(), secrets, nowMs })).id).toBe('msg_1');
  });

  test.each([
    ['Headers', (headers: Record<string, string>) => new Headers(headers)],
    [
      'names in any spelling, with lists',
      (headers: Record<string, string>) =>
        Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name.toUpperCase(), [value]]),
        ),
    ],
  ])('is verified with %s', async (_which, wrap) => {
    const headers = wrap({ ...(await signed()) });
    expect((await verify({ body: BODY, headers, secrets, nowMs })).id).toBe('msg_1');
  });

  test('is verified by any of several secrets and any of several signatures', async () => {
    const headers = await signed();
    const signature = `v2,AAAA v1,not+base64! v1,AAAA ${headers['webhook-signature']}`;
    const input = { body: BODY, headers: { ...headers, 'webhook-signature': signature }, nowMs };
    expect((await verify({ ...input, secrets: [OTHER, SECRET] })).id).toBe('msg_1');
    expect((await verify({ ...input, secrets: SECRET.slice(6) })).id).toBe('msg_1');
  });

  test('is verified with the headers of Svix where there are no others', async () => {
    const headers = await signed();
    const svix = {
      'svix-id': 'msg_1',
      'svix-timestamp': headers['webhook-timestamp'],
      'svix-signature': headers['webhook-signature'],
    };
    expect((await verify({ body: BODY, headers: svix, secrets, nowMs })).id).toBe('msg_1');
    expect(await reasonOf({ headers: { ...svix, 'webhook-id': 'msg_1' } })).toBe('missing_header');
  });
});

describe('a delivery is refused [security]', () => {
  test.each(['id', 'timestamp', 'signature'])('without webhook-%s', async (name) => {
    const headers = { ...(await signed()), [`webhook-${name}`]: '' };
    expect(await reasonOf({ headers })).toBe('missing_header');
  });

  test.each(['soon', '1700000000abc', '-1', '1.5', '1700000000, 1700000000', '0x65'])(
    'when its timestamp is %j',
    async (timestamp) => {
      const headers = { ...(await signed()), 'webhook-timestamp': timestamp };
      expect(await reasonOf({ headers })).toBe('bad_header');
    },
  );

  test.each<[VerifyReason | null, number, number | undefined]>([
    [null, -300, undefined],
    ['too_old', -301, undefined],
    [null, 300, undefined],
    ['too_new', 301, undefined],
    [null, -60, 60],
    ['too_old', -61, 60],
    ['too_old', 0, Number.NaN],
  ])('as %p when it is signed %d s from now with a tolerance of %p s', async (reason, from, s) => {
    const headers = await signed({ timestamp: new Date(NOW_MS + from * 1_000) });
    const tolerance = s === undefined ? {} : { toleranceSeconds: s };
    const input = { body: BODY, headers, ...tolerance };
    if (reason) expect(await reasonOf(input)).toBe(reason);
    else expect((await verify({ ...input, secrets, nowMs })).id).toBe('msg_1');
  });

  test('a delivery with another secret, id, time, body or signature is refused', async () => {
    const headers = await signed();
    const refused: Partial<VerifyInput>[] = [
      { secrets: [OTHER] },
      { headers: { ...headers, 'webhook-id': 'msg_2' } },
      { headers: { ...headers, 'webhook-timestamp': '1700000001' } },
      { body: '{"n":1,"name":"é"}' },
      { headers: { ...headers, 'webhook-signature': headers['webhook-signature'].slice(3) } },
      { headers: { ...headers, 'webhook-signature': headers['webhook-signature'].slice(0, -4) } },
      { headers: { ...headers, 'webhook-signature': `v1a,${headers['webhook-signature']}` } },
    ];
    for (const input of refused) expect(await reasonOf(input)).toBe('no_match');
  });

  test('when its signature is behind 16 others, each of which costs a hash of the body', async () => {
    const headers = await signed();
    const behind = (others: number) => ({
      ...headers,
      'webhook-signature': 'v1,AAAA '.repeat(others) + headers['webhook-signature'],
    });
    expect(await reasonOf({ headers: behind(16) })).toBe('no_match');
    await verify({ body: BODY, headers: behind(15), secrets, nowMs });
  });

  test('when its body was parsed, with what to do', async () => {
    const headers = await signed();
    const parsed = verify({ body: JSON.parse(BODY), headers, secrets, nowMs });
    await expect(parsed).rejects.toMatchObject({
      reason: 'body_was_parsed',
      message: expect.stringContaining('await request.text()'),
    });
  });

  test.each([
    ['is not JSON', 'order=17'],
    ['is empty', ''],
    ['is not UTF-8', new Uint8Array([0x22, 0xff, 0x22])],
  ])('when its body %s', async (_which, body) => {
    const headers = await signed({ payload: body });
    expect(await reasonOf({ body, headers })).toBe('not_json');
  });

  test('when its id is known, which is asked last', async () => {
    const asked: string[] = [];
    const seen = (id: string): Promise<boolean> => {
      asked.push(id);
      return Promise.resolve(asked.length > 1);
    };
    expect(await reasonOf({ seen, secrets: [OTHER] })).toBe('no_match');
    expect(asked).toEqual([]);
    const input = { body: BODY, headers: await signed(), secrets, nowMs, seen };
    await verify(input);
    expect(await reasonOf({ seen })).toBe('seen_before');
    expect(asked).toEqual(['msg_1', 'msg_1']);
  });

  test('when seen fails, with its error', async () => {
    const seen = (): never => {
      throw new RangeError('redis is away');
    };
    const input = { body: BODY, headers: await signed(), secrets, nowMs, seen };
    await expect(verify(input)).rejects.toThrow(RangeError);
  });
});

describe('a body', () => {
  const bytes = new TextEncoder().encode(BODY);
  const inRealm = (code: string): unknown =>
    runInNewContext(`(${code})`, { bytes: Array.from(bytes) });
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length + 2), 1, bytes.length);
  shared.set(bytes);

  test.each([
    ['a buffer', bytes.slice().buffer],
    ['a view', new DataView(bytes.buffer)],
    ['a buffer of another realm', inRealm('Uint8Array.from(bytes).buffer')],
    ['a view of another realm', inRealm('Uint8Array.from(bytes)')],
    ['a view of shared memory', shared],
    ['shared memory', new Uint8Array(shared).buffer],
    ['shared memory of another realm', sharedOf(inRealm('SharedArrayBuffer'))],
  ])('may be %s', async (_what, body) => {
    const headers = await signed();
    for (const serviceSignature of [false, true]) {
      const input = { body, headers, secrets, serviceSignature, nowMs };
      expect((await verify(input)).payload).toEqual(JSON.parse(BODY));
    }
  });

  function sharedOf(constructor: unknown): SharedArrayBuffer {
    const memory = new (constructor as typeof SharedArrayBuffer)(bytes.length);
    new Uint8Array(memory).set(bytes);
    return memory;
  }

  test.each([[{ n: 1 }], [[1, 2]], [null], [17]])(
    'that was parsed is refused: %j',
    async (body) => {
      expect(await reasonOf({ body })).toBe('body_was_parsed');
    },
  );
});

describe('a secret with blanks around it', () => {
  const BLANKS = [' ', '\t', '\n', '\r\n', '\uFEFF'];

  test.each(BLANKS.flatMap((blank) => [blank + SECRET, SECRET + blank]))(
    'is the secret: %j',
    async (secret) => {
      const headers = await signed();
      expect(await signed({ secret })).toEqual(headers);
      for (const serviceSignature of [false, true]) {
        const input = { body: BODY, headers, secrets: secret, serviceSignature, nowMs };
        expect(await verify(input)).toMatchObject({ id: 'msg_1' });
      }
    },
  );

  test('stays as it is when it is another key of the service signature', async () => {
    const secret = ' any text ';
    const mac = createHmac('sha256', secret).update(BODY).digest('hex');
    const headers = { ...(await signed()), 'x-service-signature': mac };
    const input = { body: BODY, headers, secrets: secret, serviceSignature: true, nowMs };
    expect(await verify(input)).toMatchObject({ id: 'msg_1' });
    expect(await reasonOf({ ...input, secrets: 'any text' })).toBe('no_match');
  });
});

describe('wrong options are a TypeError that shows no secret', () => {
  test.each<[Partial<VerifyInput>, string]>([
    [{}, 'secrets and jwksUrl are missing'],
    [{ secrets: [] }, 'secrets and jwksUrl are missing'],
    [{ secrets: [SECRET, ''] }, 'secrets[1] is not whsec_ and base64'],
    [{ secrets: [' \n'] }, 'secrets[0] is not whsec_ and base64'],
    [{ secrets: [undefined as unknown as string] }, 'secrets[0] is not whsec_ and base64'],
    [{ secrets: [undefined as unknown as string] }, 'secrets[0] is not'],
    [{ secrets: ['whsec_'] }, 'secrets[0] is not'],
    [{ secrets: ['whsec_hunter2!'] }, 'secrets[0] is not'],
    [{ secrets: '' }, 'secrets[0] is not'],
    [{ jwksUrl: 'http://example.com/keys' }, 'jwksUrl is not https'],
    [{ jwksUrl: 'http://127.0.0.1.example.com/keys' }, 'jwksUrl is not https'],
    [{ jwksUrl: 'data:application/json,{}' }, 'jwksUrl is not https'],
    [{ jwksUrl: 'https://example.com/keys', serviceSignature: true }, 'secrets is missing'],
  ])('%j', async (options, message) => {
    const failed = verify({ body: BODY, headers: await signed(), nowMs, ...options });
    await expect(failed).rejects.toThrow(TypeError);
    await expect(failed).rejects.toThrow(message);
    await expect(failed).rejects.not.toThrow('hunter2');
  });
});

describe('the signature of the service', () => {
  const hmac = (secret: string): string => createHmac('sha256', secret).update(BODY).digest('hex');
  const verifyOwn = async (
    header: Record<string, string>,
    options: Partial<VerifyInput> = {},
  ): Promise<string> => {
    const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': '1700000000', ...header };
    const input = { body: BODY, headers, secrets, nowMs, serviceSignature: true };
    return (await verify({ ...input, ...options })).id;
  };

  test('is verified with the text of the secret, prefix included', async () => {
    expect(await verifyOwn({ 'x-service-signature': hmac(SECRET) })).toBe('msg_1');
    const { 'x-service-signature': ours } = await signed();
    expect(ours).toBe(hmac(SECRET));
  });

  test('is verified with any text as the secret, in a header of any name', async () => {
    const options = { serviceSignature: 'X-Own', secrets: ['first', 'own'] };
    expect(await verifyOwn({ 'x-own': hmac('own') }, options)).toBe('msg_1');
  });

  test.each([
    ['another secret', hmac(OTHER), 'no_match'],
    ['upper case', hmac(SECRET).toUpperCase(), 'no_match'],
    ['a shorter text', hmac(SECRET).slice(2), 'no_match'],
    ['nothing', '', 'missing_header'],
  ])('is refused when it is of %s [security]', async (_which, value, reason) => {
    await expect(verifyOwn({ 'x-service-signature': value })).rejects.toMatchObject({ reason });
  });

  test('does not count in place of webhook-signature [security]', async () => {
    const headers = { ...(await signed()), 'webhook-signature': 'v1,AAAA' };
    expect(await reasonOf({ headers })).toBe('no_match');
  });
});

describe('the reference library', () => {
  test('agrees about random bodies, ours and its own signatures', async () => {
    expect(await findDisagreement(3_000)).toBeNull();
  });
});
