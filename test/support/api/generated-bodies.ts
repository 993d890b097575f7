import fc from 'fast-check';

export const text = (min: number, max: number) =>
  fc.oneof(
    fc.constantFrom('x'.repeat(min), 'x'.repeat(max), 'x'.repeat(max + 1), '', '😀'.repeat(max)),
    fc.string({ unit: 'grapheme', maxLength: 20 }),
    ...(min > 0 ? [fc.constant('é'.repeat(min - 1))] : []),
  );
const wrong = fc.constantFrom<unknown>(null, 7, true, [], {}, { $gt: '' });
export const maybeWrong = (arbitrary: fc.Arbitrary<unknown>) =>
  fc.oneof({ arbitrary, weight: 12 }, { arbitrary: wrong, weight: 1 });

export const id = maybeWrong(fc.oneof(fc.constant('app_1'), text(1, 128)));
const headerName = maybeWrong(
  fc.oneof(
    fc.constantFrom('X-Tenant', 'HOST', 'Content-Typo', 'metadata', 'metadatas', 'webhook-x', 'te'),
    fc.constantFrom(
      'Authorization',
      'x y',
      'é',
      'x'.repeat(128),
      'x'.repeat(129),
      "!#$%&'*+.^_`|~0",
    ),
    fc.constantFrom('X-Forwarded-For', 'x-aws-ec2-metadata-token-ttl', 'Via', 'Viaduct', ''),
    fc.constantFrom('svix-id', 'SVIX-Own', 'svix', 'X-svix-id'),
  ),
);
const headerValue = maybeWrong(
  fc.constantFrom('v', '', 'a\nb', '\0', 'ÿ', 'Ā', '\x7f', 'v'.repeat(4_096), 'v'.repeat(4_097)),
);
const url = maybeWrong(
  fc.constantFrom(
    ...['https://example.com', 'HTTPS://Exämple.com/a b?c=ö', 'https://example.com/@me?u=a@b'],
    ...['http://example.com/', 'https:example.com', ' https://example.com', 'https:/example.com'],
    ...['https://u@example.com/', 'https://@example.com/', 'https://example.com/#', 'ftp://a.b/'],
    ...['https://example.com\\a', 'https:\\\\example.com', '/hook', '', 'https://', 'https://?a'],
    `https://example.com/${'x'.repeat(2_028)}`,
    `https://example.com/${'x'.repeat(2_029)}`,
  ),
);
const credential = maybeWrong(
  fc.oneof(fc.constantFrom('k', 'a:b', 'é', 'Ā', 'a\r'), text(1, 1_024)),
);
const authMethod = maybeWrong(fc.constantFrom('hmac', 'basic', 'apiKey', 'api_key', 'oauth2'));
const customHeaders = maybeWrong(
  fc.oneof(
    // One at a time: JSON Schema cannot compare two names without regard to case.
    fc.array(fc.record({ key: headerName, value: headerValue }), { maxLength: 1 }),
    fc.constantFrom([{ key: 'X-Service-Signature', value: 'v' }], [{ key: 'X-A' }]),
    fc.constantFrom([{ key: 'AUTHORIZATION', value: 'v' }], [{ key: 'X-A', value: 'v', note: 1 }]),
    fc
      .constantFrom(20, 21)
      .map((n) => Array.from({ length: n }, (_, i) => ({ key: `X-${i}`, value: '' }))),
  ),
);

/** Names that no custom header has here: JSON Schema cannot compare two fields. */
const ownHeader = maybeWrong(fc.constantFrom('X-Own', 'Host', 'x y', 'Svix-Own'));

const uid = maybeWrong(fc.constantFrom('customer-17', 'a b', '', 'x'.repeat(128), 'x'.repeat(129)));
const metadata = maybeWrong(
  fc.constantFrom(
    ...[{ a: 'b' }, { ['x'.repeat(41)]: '' }, { '': 'b' }, { a: 'x'.repeat(500) }],
    ...[{ a: 'x'.repeat(501) }, { a: null }, { ['😀'.repeat(40)]: 'b' }],
    ...[20, 21].map((n) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, 'v']))),
  ),
);
export const ownFields = { uid, metadata };

export const changes = {
  ...ownFields,
  url,
  name: maybeWrong(text(2, 100)),
  signatureHeaders: maybeWrong(
    fc.constantFrom(
      ...[['webhook'], ['webhook', 'svix'], ['svix', 'webhook'], [], ['svix'], ['webhook', 'x']],
      ['webhook', 'webhook'],
    ),
  ),
  customHeaders,
  eventTypes: maybeWrong(fc.array(maybeWrong(fc.constantFrom('a.b', 'a b', '', 'x'.repeat(129))))),
  filter: maybeWrong(
    fc.constantFrom<unknown>(
      ...[null, {}, { tags: 'a' }, { payload: { a: { $in: ['b', 1] } } }, { a: 1 }],
      ...[{ $and: [] }, { $or: [{ tags: 'a' }], $not: { payload: {} } }, { $not: 'a' }],
    ),
  ),
  disabled: maybeWrong(fc.boolean()),
  timeoutSeconds: maybeWrong(fc.constantFrom(null, 0, 1, 15, 16, 1.5)),
  maxAttempts: maybeWrong(fc.constantFrom(null, 0, 1, 7, 8, 1.5)),
  finalStatusCodes: maybeWrong(
    fc.constantFrom(null, ...[[400, 599], [], [399], [600], [429], [410, 410], ['410'], [404.5]]),
  ),
  onGone: maybeWrong(fc.constantFrom(null, 'retry', 'disable', 'Disable')),
  obeyControlHeaders: maybeWrong(fc.constantFrom(null, true, false)),
  ordering: maybeWrong(fc.constantFrom(null, 'none', 'block', 'skip', 'Skip')),
  rateLimitPerSecond: maybeWrong(fc.constantFrom(null, 0, 1, 10_000, 10_001, 1.5)),
  authMethod,
  basicAuthUsername: credential,
  basicAuthPassword: credential,
  apiKey: credential,
  apiKeyHeader: ownHeader,
  hmacHeader: fc.oneof(ownHeader, fc.constantFrom('authorization', 'X-Authorization')),
  hmacSecret: credential,
  signatureAlgorithm: maybeWrong(fc.constantFrom('hmac-sha256', 'ed25519', 'ES256')),
  oauth2TokenUrl: url,
  oauth2ClientId: credential,
  oauth2ClientSecret: credential,
  oauth2Scope: fc.oneof(
    fc.constantFrom(null, 'a b', 'a  b', ' a', '"'),
    maybeWrong(text(1, 1_024)),
  ),
  oauth2Audience: fc.oneof(fc.constant(null), credential),
  oauth2ClientAuthentication: maybeWrong(fc.constantFrom('basic', 'post', 'jwt')),
};

const base64Of = (bytes: number): string => Buffer.alloc(bytes, 7).toString('base64');

export const secret = maybeWrong(
  fc.constantFrom(
    ...[23, 24, 25, 26, 32, 62, 63, 64, 65, 66].map((bytes) => `whsec_${base64Of(bytes)}`),
    ...[base64Of(24), `whsec_${base64Of(25).slice(0, -2)}`, `whsec_${base64Of(24)}\n`],
    // Bits behind the last byte, the alphabet of URLs, and padding that no byte needs.
    ...[`whsec_${base64Of(24)}Bx==`, `whsec_${base64Of(24)}B-A=`, `whsec_${base64Of(24)}====`],
  ),
);

export const webhookFields = {
  ...changes,
  secret,
  appId: id,
  projectId: id,
  environmentId: maybeWrong(fc.constantFrom('live', 'a b', '', 'x'.repeat(64), 'x'.repeat(65))),
};

export const name = maybeWrong(text(1, 100));
export const description = maybeWrong(text(0, 1_000));
export const environment = maybeWrong(fc.constantFrom('development', 'production', 'live'));
export const storage = {
  storeResponses: maybeWrong(fc.boolean()),
  storePayloads: maybeWrong(fc.constantFrom('retained', 'until-delivered', 'never')),
};
export const time = maybeWrong(
  fc.constantFrom(
    ...['2026-01-31T09:30:00.000Z', '2026-01-31T09:30:00Z', '2026-02-30T09:30:00Z', '2026-01-31'],
    ...[
      '2026-01-31T09:30:00+02:00',
      '2026-01-31T09:30:00',
      '2026-01-31T09:30Z',
      '20260131T093000Z',
    ],
    ...[
      '2026-01-31T24:00:00Z',
      '2026-01-31T23:59:60Z',
      '2026-01-31t09:30:00z',
      '0000-01-01T00:00:00Z',
    ],
  ),
);
export const payload = maybeWrong(fc.constantFrom({}, { a: { b: [1, 'x', null] } }, 'text', [1]));
export const messageFields = {
  eventType: maybeWrong(text(1, 128)),
  tags: maybeWrong(
    fc.oneof(
      fc.array(maybeWrong(text(1, 128)), { maxLength: 3 }),
      fc.constantFrom([], ['a', 'a'], ['a', 'b', 'c', 'd', 'e'], ['a', 'b', 'c', 'd', 'e', 'f']),
    ),
  ),
  externalId: maybeWrong(text(1, 256)),
  orderingKey: maybeWrong(fc.oneof(text(1, 256), fc.constant('a\tb'))),
  deliverAt: time,
};
export const graceSeconds = maybeWrong(fc.constantFrom(0, 604_800, 604_801, -1, 1.5, 1e300));

/** Generates bodies from some of the fields, most of them added to a valid body. */
export function bodiesOf(
  fields: Record<string, fc.Arbitrary<unknown>>,
  good: object[],
): fc.Arbitrary<object> {
  const some = fc
    .subarray(Object.keys(fields), { maxLength: Math.min(4, Object.keys(fields).length) })
    .chain((keys) => fc.record(Object.fromEntries(keys.map((key) => [key, fields[key] ?? wrong]))));
  const unknown = fc.constantFrom({}, {}, {}, {}, {}, { surprise: 1 });
  return fc
    .tuple(fc.constantFrom({}, ...good, ...good), some, unknown)
    .map(([base, given, more]) => ({ ...base, ...given, ...more }));
}
