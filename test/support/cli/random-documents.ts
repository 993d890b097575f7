import fc from 'fast-check';

/** A document of `apply` as YAML and JSON have it, with the variables that it names. */
export interface RandomDocument {
  document: Record<string, unknown>;
  env: Record<string, string>;
}

/** PEM of a certificate and its key. */
export interface Pair {
  cert: string;
  key: string;
}

interface Shape {
  projects: number;
  /** None when left out. */
  eventTypes?: number;
  apps: number;
  webhooks: number;
  certificates: readonly Pair[];
}

type Fields = Record<string, unknown>;

const text = fc.oneof(
  fc.string({ minLength: 2, maxLength: 20 }),
  fc.constantFrom('yes', '017', 'null', ' - x', 'ä€😀', '# no comment', '2026-01-01', '"q"'),
);
const credential = fc.stringMatching(/^[!-9;-~]{1,20}$/);
const metadata = fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.string({ maxLength: 20 }), {
  maxKeys: 3,
});
const url = fc.constantFrom(
  'https://example.com',
  'https://example.com/a|b^c',
  'https://EXAMPLE.com:443/x y?q={1}&t=ü',
  'https://example.com/hooks?token=a%zz',
  'https://other.example.com/%41',
);
const secret = fc
  .uint8Array({ minLength: 24, maxLength: 64 })
  .map((bytes) => `whsec_${Buffer.from(bytes).toString('base64')}`);

/** Given, null, or left out. */
const optional = <T>(given: fc.Arbitrary<T>): fc.Arbitrary<T | null | undefined> =>
  fc.oneof({ weight: 3, arbitrary: given }, fc.constantFrom(null, undefined));
const maybe = <T>(given: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 2, arbitrary: given }, fc.constant(undefined));

const project = fc.record({
  name: text,
  description: optional(text),
  metadata: optional(metadata),
});
/** Webhooks of a project without event types could select none. */
const policed = fc
  .tuple(project, optional(fc.constantFrom('open', 'known', 'validated')))
  .map(([fields, eventTypePolicy]) => ({ ...fields, eventTypePolicy }));
const schema = fc.constantFrom<object>(
  {},
  { type: 'object', required: ['a'] },
  { enum: [1, null] },
);
const eventType = fc.record({
  description: optional(text),
  group: optional(text),
  schema: optional(schema),
  deprecated: optional(fc.boolean()),
  archived: optional(fc.boolean()),
});
const app = fc.record({
  name: text,
  description: optional(text),
  metadata: optional(metadata),
  storeResponses: optional(fc.boolean()),
  storePayloads: optional(fc.constantFrom('retained', 'until-delivered')),
});

/** A value that becomes `secretFrom`, and is in the environment or not. */
class Hidden {
  readonly value: string | undefined;

  constructor(value: string | undefined) {
    this.value = value;
  }
}

const given = <T extends string>(value: fc.Arbitrary<T>): fc.Arbitrary<Hidden> =>
  value.map((each) => new Hidden(each));
/** Without a variable, what is stored stays. */
const kept = (value: fc.Arbitrary<string>): fc.Arbitrary<Hidden> =>
  maybe(value).map((each) => new Hidden(each));

const header = (name: string) => fc.constantFrom(name, name.toLowerCase());

const auth: fc.Arbitrary<Fields> = fc.oneof(
  fc.record({
    authMethod: fc.constantFrom('hmac', null),
    hmacHeader: optional(header('X-Sig')),
    hmacSecret: optional(kept(text)),
    signatureAlgorithm: optional(fc.constant('hmac-sha256')),
  }),
  fc.record({
    authMethod: fc.constant('hmac'),
    signatureAlgorithm: fc.constant('ed25519'),
    hmacHeader: fc.constantFrom(null, undefined),
    hmacSecret: fc.constantFrom(null, undefined),
  }),
  fc.record({
    authMethod: fc.constant('basic'),
    basicAuthUsername: credential,
    basicAuthPassword: given(credential),
  }),
  fc.record({
    authMethod: fc.constant('apiKey'),
    apiKey: given(credential),
    apiKeyHeader: header('X-Key'),
  }),
  fc.record({
    authMethod: fc.constant('oauth2'),
    oauth2TokenUrl: url,
    oauth2ClientId: credential,
    oauth2ClientSecret: given(credential),
    oauth2Scope: optional(fc.constant('orders.write orders.read')),
    oauth2Audience: optional(credential),
    oauth2ClientAuthentication: optional(fc.constantFrom('basic', 'post')),
  }),
);

const customHeaders = fc.uniqueArray(
  fc.record({
    key: fc.constantFrom('X-Tenant', 'x-trace', 'X-Auth-Token', 'X-Secret'),
    value: fc.oneof(credential, given(credential)),
  }),
  { selector: ({ key }) => key, maxLength: 3 },
);

const tlsOf = (certificates: readonly Pair[]): fc.Arbitrary<Fields> => {
  const pair = fc.constantFrom(...certificates);
  const ca = pair.map(({ cert }) => cert);
  return fc.oneof(
    ca.map((each): Fields => ({ ca: each })),
    fc.tuple(pair, maybe(ca)).map(([{ cert: certificate, key }, each]): Fields => {
      const both = { certificate, key: new Hidden(key) };
      return each === undefined ? both : { ...both, ca: each };
    }),
  );
};

const webhookOf = (certificates: readonly Pair[]): fc.Arbitrary<Fields> =>
  fc
    .tuple(
      fc.record({
        url,
        name: optional(text),
        secret: optional(kept(secret)),
        eventTypes: optional(fc.uniqueArray(fc.constantFrom('order.paid', 'order/x', 'a:b'))),
        filter: optional(
          fc.constantFrom<object>({ tags: 'eu' }, { $not: { payload: { a: [1, null] } } }),
        ),
        disabled: optional(fc.boolean()),
        rateLimitPerSecond: optional(fc.integer({ min: 1, max: 10_000 })),
        timeoutSeconds: optional(fc.integer({ min: 1, max: 15 })),
        maxAttempts: optional(fc.integer({ min: 1, max: 7 })),
        finalStatusCodes: optional(fc.constantFrom([400], [410, 422, 599])),
        onGone: optional(fc.constantFrom('retry', 'disable')),
        obeyControlHeaders: optional(fc.boolean()),
        ordering: optional(fc.constantFrom('none', 'block', 'skip')),
        signatureHeaders: optional(fc.constantFrom(['webhook'], ['svix', 'webhook'])),
        customHeaders: optional(customHeaders),
        tls:
          certificates.length === 0
            ? fc.constantFrom(null, undefined)
            : optional(tlsOf(certificates)),
        metadata: optional(metadata),
      }),
      auth,
    )
    .map(([fields, method]) => ({ ...fields, ...method }));

/** Documents whose fields are valid, each by itself. The same uids and owners come each time. */
export function randomDocuments({
  projects,
  eventTypes = 0,
  apps,
  webhooks,
  certificates,
}: Shape): fc.Arbitrary<RandomDocument[]> {
  const many = (fields: fc.Arbitrary<Fields>, count: number) =>
    fc.array(fields, { minLength: count, maxLength: count });
  return fc
    .tuple(
      many(eventTypes > 0 ? policed : project, projects),
      many(eventType, eventTypes),
      many(app, apps),
      many(webhookOf(certificates), webhooks),
    )
    .map(([ofProjects, ofTypes, ofApps, ofWebhooks]) => [
      ...ofWebhooks.map((fields, n) =>
        finished('Webhook', n, { ...webhookOwner(n, { projects, apps }), ...fields }),
      ),
      ...ofApps.map((fields, n) =>
        finished('App', n, { projectId: `uid:project-${n % projects}`, ...fields }),
      ),
      ...ofTypes.map((fields, n) => {
        const owned = { projectId: `uid:project-${n % projects}`, ...fields };
        const { env, document } = finished('EventType', n, owned);
        const { uid: _uid, ...others } = document;
        return { env, document: { name: `order/type:${n}`, ...others } };
      }),
      ...ofProjects.map((fields, n) => finished('Project', n, fields)),
    ]);
}

/** Each fourth webhook is global. */
function webhookOwner(n: number, { projects, apps }: { projects: number; apps: number }): Fields {
  if (n % 4 === 3) return { projectId: `uid:project-${n % projects}`, environmentId: 'live' };
  return { appId: `uid:app-${n % apps}` };
}

function finished(kind: string, n: number, fields: Fields): RandomDocument {
  const uid = `${kind.toLowerCase()}-${n}`;
  const env: Record<string, string> = {};
  const replace = (value: unknown, name: string): unknown => {
    if (value instanceof Hidden) {
      const variable = `V_${n}_${name}`;
      if (value.value !== undefined) env[variable] = value.value;
      return { secretFrom: { env: variable } };
    }
    if (Array.isArray(value)) return value.map((each, index) => replace(each, `${name}_${index}`));
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).map(([key, each]) => [
      key,
      replace(each, `${name}_${key}`),
    ]);
    return Object.fromEntries(entries);
  };
  const named = Object.entries(fields).filter(([, value]) => value !== undefined);
  const document = Object.fromEntries(named.map(([name, value]) => [name, replace(value, name)]));
  return { document: { kind, uid, ...document }, env };
}
