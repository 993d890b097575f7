import { REFUSED_NAMES, REFUSED_PREFIXES } from '@posthorn/domain/request/header-rules.ts';
import { DEFAULT_HMAC_HEADER } from '@posthorn/domain/webhook.ts';
import type { AuthName } from '../../../../webhooks/auth-method.ts';

/** The credential fields of each method of authentication. */
export const AUTH_FIELDS = {
  basic: ['basicAuthUsername', 'basicAuthPassword'],
  apiKey: ['apiKey', 'apiKeyHeader'],
  hmac: ['hmacHeader', 'hmacSecret', 'signatureAlgorithm'],
  oauth2: [
    'oauth2TokenUrl',
    'oauth2ClientId',
    'oauth2ClientSecret',
    'oauth2Scope',
    'oauth2Audience',
    'oauth2ClientAuthentication',
  ],
} as const satisfies Record<AuthName, readonly string[]>;

/** Those that a webhook which gets the method must be given. */
export const REQUIRED_FIELDS: Readonly<Record<AuthName, readonly string[]>> = {
  basic: AUTH_FIELDS.basic,
  apiKey: AUTH_FIELDS.apiKey,
  hmac: [],
  oauth2: ['oauth2TokenUrl', 'oauth2ClientId', 'oauth2ClientSecret'],
};

/** Those of `hmac` that only HMAC uses. */
export const SECRET_FIELDS = ['hmacHeader', 'hmacSecret'] as const;

const WITHOUT_SECRET_FIELDS = {
  if: {
    required: ['signatureAlgorithm'],
    properties: { signatureAlgorithm: { const: 'ed25519' } },
  },
  then: { properties: { hmacHeader: false, hmacSecret: false } },
};

const METHODS = ['basic', 'apiKey', 'hmac', 'oauth2'] as const;
/** All but the default. */
const NAMED_METHODS = ['basic', 'apiKey', 'oauth2'] as const;
const IS_NAMED = { anyOf: NAMED_METHODS.map(has) };
/** They set `Authorization`. */
const IS_AUTHORIZATION = { anyOf: [has('basic'), has('oauth2')] };

/** The rules between the fields of a new webhook, as far as JSON Schema can express them. */
export const CREATE_RULES = {
  oneOf: [
    { required: ['appId'], properties: { projectId: false, environmentId: false } },
    { required: ['projectId', 'environmentId'], properties: { appId: false } },
  ],
  allOf: [
    ...NAMED_METHODS.map((method) => ({
      if: has(method),
      then: { required: REQUIRED_FIELDS[method] },
      else: without(method),
    })),
    { if: IS_NAMED, then: without('hmac') },
    { if: IS_AUTHORIZATION, then: withoutCustomHeader('authorization') },
    {
      if: { not: { anyOf: [IS_NAMED, { required: ['hmacHeader'] }] } },
      then: withoutCustomHeader(DEFAULT_HMAC_HEADER),
    },
    WITHOUT_SECRET_FIELDS,
  ],
};

/** The rules between the fields of an update that hold for every webhook; the others depend on the stored one. */
export const UPDATE_RULES = {
  dependentSchemas: Object.fromEntries(
    METHODS.flatMap((method) => AUTH_FIELDS[method].map((field) => [field, onlyWith(method)])),
  ),
  allOf: [
    { if: IS_AUTHORIZATION, then: withoutCustomHeader('authorization') },
    WITHOUT_SECRET_FIELDS,
  ],
};

function has(method: AuthName): object {
  return { required: ['authMethod'], properties: { authMethod: { const: method } } };
}

function without(...methods: AuthName[]): { properties: Record<string, false> } {
  const fields = methods.flatMap((method) => [...AUTH_FIELDS[method]]);
  return { properties: Object.fromEntries(fields.map((field) => [field, false])) };
}

function onlyWith(method: AuthName): object {
  const { properties } = without(...METHODS.filter((other) => other !== method));
  const setsAuthorization = method === 'basic' || method === 'oauth2';
  const headers = setsAuthorization ? withoutCustomHeader('authorization').properties : {};
  return { properties: { authMethod: { const: method }, ...properties, ...headers } };
}

function withoutCustomHeader(name: string): { properties: { customHeaders: object } } {
  const key = { not: { pattern: sameNamePattern(name) } };
  return { properties: { customHeaders: { items: { properties: { key } } } } };
}

/** Returns a pattern of the header names that are refused. */
export function refusedNamePattern(): string {
  const whole = [...REFUSED_NAMES].map((name) => `${inAnyCase(name)}$`);
  return `^(${[...whole, ...REFUSED_PREFIXES.map(inAnyCase)].join('|')})`;
}

/** Returns a pattern of one header name in any case. */
export function sameNamePattern(name: string): string {
  return `^${inAnyCase(name)}$`;
}

/** JSON Schema patterns have no flag to ignore case. */
function inAnyCase(name: string): string {
  return name.replaceAll(/[a-z]/gi, (letter) => `[${letter.toUpperCase()}${letter.toLowerCase()}]`);
}
