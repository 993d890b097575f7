import { z } from 'zod';
import type { EgressPolicy } from './egress.ts';
import {
  credential,
  headerCredential,
  headerName,
  MASK,
  sameNamePattern,
  sharedKey,
  text,
  urlText,
  userName,
} from './field-types.ts';
import { ImpossibleError } from './required.ts';

/**
 * How a delivery proves itself to the endpoint: one record for each method (docs/contract.md C6.4, C9.4 to C9.6,
 * C9.12 and C9.13). The fields of requests, responses and the audit log and the header of deliveries follow from it.
 */
interface MethodRule<Stored extends AuthMethod = AuthMethod> {
  /** The spelling in stored webhooks and in responses. */
  method: Stored['method'];
  /** The fields of requests. Each field belongs to one method. */
  fields: Readonly<Record<string, AuthField>>;
  /** The field that names the header with the credential; absent for `Authorization`. */
  headerField?: string;
  /** The text before the credential in the header. */
  scheme: '' | 'Basic ' | 'Bearer ';
  /** Throws an ImpossibleError when the proof lacks what the method needs. */
  credential(auth: Stored, proof: Proof): string;
}

/** The proofs of one request, besides the credentials of the webhook. */
export interface Proof {
  /** Returns the hex HMAC of the payload. */
  hmacOf: (secret: string) => string;
  /** For a webhook with `oauth2`. */
  accessToken?: string | undefined;
  /** For people: credentials that are sent are masked. */
  isMasked?: true;
}

/** A field of a request. */
interface AuthField {
  schema: z.ZodType | ((policy: EgressPolicy) => z.ZodType);
  /** The name in the stored method. */
  as: string;
  /** A webhook that gets the method must be given the field. */
  isRequired?: true;
  /** The value of a webhook that gets the method without the field. `secret` is that of the webhook. */
  initially?: (secret: string) => string | null;
  /** The initial value is stored and shown as an absent one. */
  isAbsentInitially?: true;
  /** `sent`: deliveries or token requests send the secret. `signs`: it never leaves Posthorn. */
  secret?: 'sent' | 'signs';
  audit: 'shown' | 'url' | 'hidden';
}

/** The algorithms of a webhook with `hmac` (docs/contract.md C6.15). The first one is the default. */
const SIGNATURE_ALGORITHMS = ['hmac-sha256', 'ed25519'] as const;
type SignatureAlgorithm = (typeof SIGNATURE_ALGORITHMS)[number];

export const DEFAULT_HMAC_HEADER = 'X-Service-Signature';

const hmacAuth = z
  .object({
    method: z.literal('hmac'),
    hmacHeader: z.string(),
    hmacSecret: z.string(),
    signatureAlgorithm: z.literal('ed25519').exactOptional().meta({
      description:
        'Present when the key of the company signs. `hmacHeader` and `hmacSecret` are not used then',
    }),
  })
  .meta({ id: 'HmacAuth' });

const hmac = {
  method: 'hmac',
  headerField: 'hmacHeader',
  scheme: '',
  credential: ({ hmacSecret }, { hmacOf }) => hmacOf(hmacSecret),
  fields: {
    hmacHeader: {
      schema: headerName.meta({ not: { pattern: sameNamePattern('authorization') } }),
      as: 'hmacHeader',
      initially: () => DEFAULT_HMAC_HEADER,
      audit: 'shown',
    },
    hmacSecret: {
      schema: sharedKey.meta({
        description:
          'Key of the signature. Use 32 random bytes, at least 16, as text. Without it the `secret` of the webhook is the key, which has 32.',
      }),
      as: 'hmacSecret',
      initially: (secret: string) => secret,
      secret: 'signs',
      audit: 'hidden',
    },
    signatureAlgorithm: {
      schema: z.enum(SIGNATURE_ALGORITHMS, 'must be hmac-sha256 or ed25519').meta({
        id: 'SignatureAlgorithm',
        description:
          'For `hmac`: what signs the deliveries. `ed25519` signs with the key of your company, and receivers verify with its public key',
      }),
      as: 'signatureAlgorithm',
      initially: () => SIGNATURE_ALGORITHMS[0],
      isAbsentInitially: true,
      audit: 'shown',
    },
  },
} as const satisfies MethodRule<z.infer<typeof hmacAuth>>;

/** The fields of `hmac` that have no meaning while Ed25519 signs. They keep their values meanwhile. */
export const SECRET_FIELDS = ['hmacHeader', 'hmacSecret'] as const;

const basicAuth = z
  .object({
    method: z.literal('basic'),
    username: z.string(),
    password: z.string(),
  })
  .meta({ id: 'BasicAuth' });

const basic = {
  method: 'basic',
  scheme: 'Basic ',
  /** RFC 7617: user name and password in UTF-8, joined by a colon. */
  credential: ({ username, password }) => Buffer.from(`${username}:${password}`).toString('base64'),
  fields: {
    basicAuthUsername: { schema: userName, as: 'username', isRequired: true, audit: 'hidden' },
    basicAuthPassword: {
      schema: credential,
      as: 'password',
      isRequired: true,
      secret: 'sent',
      audit: 'hidden',
    },
  },
} as const satisfies MethodRule<z.infer<typeof basicAuth>>;

const apiKeyAuth = z
  .object({
    method: z.literal('api_key'),
    apiKey: z.string(),
    apiKeyHeader: z.string(),
  })
  .meta({ id: 'ApiKeyAuth' });

const apiKey = {
  method: 'api_key',
  headerField: 'apiKeyHeader',
  scheme: '',
  credential: ({ apiKey }) => apiKey,
  fields: {
    apiKey: {
      schema: headerCredential,
      as: 'apiKey',
      isRequired: true,
      secret: 'sent',
      audit: 'hidden',
    },
    apiKeyHeader: { schema: headerName, as: 'apiKeyHeader', isRequired: true, audit: 'shown' },
  },
} as const satisfies MethodRule<z.infer<typeof apiKeyAuth>>;

/** How Posthorn proves itself to a token server (RFC 6749, section 2.3.1). The first one is the default. */
const CLIENT_AUTHENTICATIONS = ['basic', 'post'] as const;

/** RFC 6749, section 3.3: names of visible ASCII without quotes and backslashes, with one space between them. */
const SCOPE = '^[!#-\\[\\]-~]+( [!#-\\[\\]-~]+)*$';

const scope = text(1, 1_024)
  .regex(new RegExp(SCOPE), 'must be scopes with one space between them')
  .meta({ pattern: SCOPE, example: 'orders.write' });

/** Where access tokens come from, and with which credentials (RFC 6749, section 4.4). */
const oauth2Client = z
  .object({
    method: z.literal('oauth2'),
    tokenUrl: z.string(),
    clientId: z.string(),
    clientSecret: z.string(),
    scope: z.string().nullable(),
    audience: z.string().nullable(),
    clientAuthentication: z.enum(CLIENT_AUTHENTICATIONS),
  })
  .meta({ id: 'Oauth2Auth' });

const oauth2 = {
  method: 'oauth2',
  scheme: 'Bearer ',
  credential(_auth, { accessToken }) {
    if (accessToken === undefined) throw new ImpossibleError('a delivery without its token');
    return accessToken;
  },
  fields: {
    oauth2TokenUrl: {
      schema: (policy: EgressPolicy) =>
        urlText(policy).meta({
          example: 'https://login.example.com/oauth2/token',
          description:
            'For `oauth2`: where access tokens are requested, with the client credentials grant. The rules are those of `url`',
        }),
      as: 'tokenUrl',
      isRequired: true,
      audit: 'url',
    },
    oauth2ClientId: { schema: credential, as: 'clientId', isRequired: true, audit: 'shown' },
    oauth2ClientSecret: {
      schema: credential,
      as: 'clientSecret',
      isRequired: true,
      secret: 'sent',
      audit: 'hidden',
    },
    oauth2Scope: { schema: scope.nullable(), as: 'scope', initially: () => null, audit: 'shown' },
    oauth2Audience: {
      schema: credential.nullable().meta({
        description: 'Sent as `audience`, which some token servers ask for; null for none',
      }),
      as: 'audience',
      initially: () => null,
      audit: 'shown',
    },
    oauth2ClientAuthentication: {
      schema: z.enum(CLIENT_AUTHENTICATIONS, 'must be basic or post').meta({
        id: 'ClientAuthentication',
        description:
          'Whether id and secret are sent to the token server in `Authorization` (`basic`, the default) or in the body (`post`)',
      }),
      as: 'clientAuthentication',
      initially: () => CLIENT_AUTHENTICATIONS[0],
      audit: 'shown',
    },
  },
} as const satisfies MethodRule<OAuth2Client>;

/** The methods as requests name them. The first one is the default. */
export const AUTH_NAMES = ['hmac', 'basic', 'apiKey', 'oauth2'] as const;
export type AuthName = (typeof AUTH_NAMES)[number];

const authName = z
  .enum(AUTH_NAMES, 'must be hmac, basic, apiKey or oauth2')
  .meta({ id: 'AuthMethodName' });

/** By the names in requests. */
const METHODS = { hmac, basic, apiKey, oauth2 };
/** The same, without the types of the single methods. */
export const METHOD_RULES: Readonly<Record<AuthName, MethodRule>> = METHODS;

/** The method of a webhook, with its credentials. */
export const authMethodSchema = z
  .discriminatedUnion('method', [hmacAuth, apiKeyAuth, basicAuth, oauth2Client])
  .meta({ id: 'AuthMethod', description: 'How deliveries authenticate to the endpoint' });

export type AuthMethod = z.infer<typeof authMethodSchema>;
export type OAuth2Client = z.infer<typeof oauth2Client>;

type Rules = (typeof METHODS)[AuthName]['fields'];
type FieldsOf<Fields> = Fields extends unknown ? keyof Fields : never;
/** The name of a credential field. */
export type AuthFieldName = Extract<FieldsOf<Rules>, string>;
type RuleOf<Name, Fields = Rules> = Fields extends Record<Name & string, infer Rule> ? Rule : never;
type SchemaOf<Rule> = Rule extends { schema: infer Schema }
  ? Schema extends (policy: EgressPolicy) => infer Made
    ? Made
    : Schema
  : never;
type AuthShape = {
  [Name in AuthFieldName]: Extract<SchemaOf<RuleOf<Name>>, z.ZodType>;
} & { authMethod: z.ZodEnum<{ [Name in AuthName]: Name }> };

/** Returns the fields of requests that choose a method and its credentials; each may be left out. */
export function authShape(policy: EgressPolicy): AuthShape {
  const fields = Object.values(METHOD_RULES).flatMap((rule) => Object.entries(rule.fields));
  const schemas = fields.map(([name, { schema }]) => [
    name,
    typeof schema === 'function' ? schema(policy) : schema,
  ]);
  return { authMethod: authName, ...Object.fromEntries(schemas) } as AuthShape;
}

/** The fields of a request that choose a method and its credentials. */
export type AuthFields = {
  [Name in keyof AuthShape]?: z.infer<AuthShape[Name]> | undefined;
};

/** The same of an update, in which null takes a field away. */
export type ChangedAuthFields = {
  [Name in keyof AuthShape]?: z.infer<AuthShape[Name]> | null | undefined;
};

/**
 * Returns the fields with the default of each that an update takes away. Null is left out for what the webhook does not
 * have, a field of another method or algorithm, and for a field that the method requires.
 */
export function withAuthDefaults(
  given: ChangedAuthFields,
  before: AuthMethod,
  secret: string,
): AuthFields {
  const chosen = chosenAuth(given, before);
  const isByCompany = chosenAlgorithm(given, before) === 'ed25519';
  const initialOf = (name: string): string | null | undefined => {
    if (name === 'authMethod') return chosen;
    if (isByCompany && SECRET_FIELDS.some((field) => field === name)) return undefined;
    return METHOD_RULES[chosen].fields[name]?.initially?.(secret);
  };
  const set = Object.entries(given)
    .map(([name, value]) => [name, value === null ? initialOf(name) : value] as const)
    .filter(([, value]) => value !== undefined);
  return Object.fromEntries(set);
}

/** The credential fields of a method. */
export function fieldNamesOf(name: AuthName): AuthFieldName[] {
  return Object.keys(METHOD_RULES[name].fields) as AuthFieldName[];
}

/** The credential fields that a webhook which gets the method must be given. */
export function requiredFieldsOf(name: AuthName): AuthFieldName[] {
  return fieldNamesOf(name).filter((field) => METHOD_RULES[name].fields[field]?.isRequired);
}

/** The field with the secret that the method sends to another server; undefined for `hmac`, whose secret signs. */
export function sentSecretOf(name: AuthName): AuthFieldName | undefined {
  return fieldNamesOf(name).find((field) => METHOD_RULES[name].fields[field]?.secret === 'sent');
}

/** The names of the fields with a secret, in requests and in stored methods. */
export const AUTH_SECRETS: readonly string[] = Object.values(METHOD_RULES).flatMap(({ fields }) =>
  Object.entries(fields).flatMap(([name, { as, secret }]) => (secret ? [name, as] : [])),
);

/** Whether the method sets `Authorization`. */
export function setsAuthorization(name: AuthName): boolean {
  return METHOD_RULES[name].headerField === undefined;
}

/** Returns the names of the fields whose values the audit log shows in this way. */
export function authFieldsAudited(audit: AuthField['audit']): string[] {
  const fields = Object.values(METHOD_RULES).flatMap((rule) => Object.entries(rule.fields));
  return fields.filter(([, rule]) => rule.audit === audit).map(([name]) => name);
}

/** The method that a request chooses: the one it names, `hmac` for null, else that of the webhook, else `hmac`. */
export function chosenAuth(
  { authMethod }: Pick<ChangedAuthFields, 'authMethod'>,
  before: AuthMethod | undefined,
): AuthName {
  const [byDefault] = AUTH_NAMES;
  return authMethod === null ? byDefault : (authMethod ?? nameOf(before) ?? byDefault);
}

export function nameOf(auth: AuthMethod): AuthName;
export function nameOf(auth: AuthMethod | undefined): AuthName | undefined;
export function nameOf(auth: AuthMethod | undefined): AuthName | undefined {
  return auth?.method === 'api_key' ? 'apiKey' : auth?.method;
}

/** The algorithm that a request chooses for `hmac`: the one it names, HMAC for null, else that of the webhook, else HMAC. */
export function chosenAlgorithm(
  { signatureAlgorithm }: Pick<ChangedAuthFields, 'signatureAlgorithm'>,
  before: AuthMethod | undefined,
): SignatureAlgorithm {
  const [byDefault] = SIGNATURE_ALGORITHMS;
  if (signatureAlgorithm !== undefined) return signatureAlgorithm ?? byDefault;
  return before && isSignedByCompany(before) ? 'ed25519' : byDefault;
}

/** Whether the signing keys of the company sign, and not the secrets of the webhook. */
export function isSignedByCompany(auth: AuthMethod): boolean {
  return auth.method === 'hmac' && auth.signatureAlgorithm === 'ed25519';
}

/**
 * Returns the method that a webhook gets. What the fields leave out stays as `before` has it, if the
 * method stays the same. `hmac` signs with `secret` unless the client gave an `hmacSecret`; both are
 * kept while Ed25519 signs. Throws when a credential is missing: the request must have been checked.
 */
export function authMethodOf(
  given: AuthFields,
  before: AuthMethod | undefined,
  secret: string,
): AuthMethod {
  const chosen = chosenAuth(given, before);
  const old = nameOf(before) === chosen ? valuesOf(before) : {};
  const stored = Object.entries(METHOD_RULES[chosen].fields).flatMap(([name, rule]) => {
    const initial = rule.initially?.(secret);
    const found = [valuesOf(given)[name], old[rule.as], initial].find((each) => each !== undefined);
    if (found === undefined) throw new ImpossibleError(`${name} is missing in a checked request`);
    return rule.isAbsentInitially && found === initial ? [] : [[rule.as, found]];
  });
  return { method: METHOD_RULES[chosen].method, ...Object.fromEntries(stored) } as AuthMethod;
}

/** The name of the header that the chosen method sets; undefined while the request does not name it. */
export function authHeaderOf(
  given: AuthFields,
  before: AuthMethod | undefined,
): string | undefined {
  const chosen = chosenAuth(given, before);
  const { headerField, fields } = METHOD_RULES[chosen];
  const rule = fields[headerField ?? ''];
  if (headerField === undefined || !rule) return 'Authorization';
  const old = nameOf(before) === chosen ? valuesOf(before) : {};
  return valuesOf(given)[headerField] ?? old[rule.as] ?? rule.initially?.('') ?? undefined;
}

/** The name of the header that a method sets; null for none of its own: Ed25519 signs in `webhook-signature`. */
export function headerNameOf(auth: AuthMethod): string | null {
  if (isSignedByCompany(auth)) return null;
  return authHeaderOf({}, auth) ?? null;
}

/** Name and value of the header that a method sets; [] for none of its own. */
export function authHeader(auth: AuthMethod, proof: Proof): [] | [name: string, value: string] {
  const header = headerNameOf(auth);
  if (header === null) return [];
  const name = nameOf(auth);
  const isMasked = proof.isMasked && sentSecretOf(name) !== undefined;
  return [
    header,
    METHOD_RULES[name].scheme + (isMasked ? MASK : METHOD_RULES[name].credential(auth, proof)),
  ];
}

/** Returns the method with its secret masked. */
export function maskedAuth(auth: AuthMethod): AuthMethod {
  const secrets = Object.values(METHOD_RULES[nameOf(auth)].fields).filter(({ secret }) => secret);
  return { ...auth, ...Object.fromEntries(secrets.map(({ as }) => [as, MASK])) };
}

/** Returns the fields by the names that requests give them, secrets included: for the audit log. */
export function authFieldsOf(auth: AuthMethod): Readonly<Record<string, unknown>> {
  const name = nameOf(auth);
  const fields = Object.entries(METHOD_RULES[name].fields).map(
    ([field, rule]): [string, unknown] => [
      field,
      valuesOf(auth)[rule.as] ?? (rule.isAbsentInitially && rule.initially?.('')),
    ],
  );
  return { authMethod: name, ...Object.fromEntries(fields) };
}

function valuesOf(auth: object | undefined): Readonly<Record<string, string | null | undefined>> {
  return (auth ?? {}) as Readonly<Record<string, string | null | undefined>>;
}
