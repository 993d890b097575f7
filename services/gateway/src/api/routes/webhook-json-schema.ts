import { REFUSED_NAMES, REFUSED_PREFIXES } from '@posthorn/domain/request/header-rules.ts';
import { DEFAULT_HMAC_HEADER } from '@posthorn/domain/webhook.ts';
import type { AuthName } from '../../webhooks/auth-method.ts';

/** The credential fields of each method of authentication. */
export const AUTH_FIELDS = {
  basic: ['basicAuthUsername', 'basicAuthPassword'],
  apiKey: ['apiKey', 'apiKeyHeader'],
  hmac: ['hmacHeader', 'hmacSecret', 'signatureAlgorithm'],
} as const satisfies Record<AuthName, readonly string[]>;

/** Those of `hmac` that only HMAC uses. */
export const SECRET_FIELDS = ['hmacHeader', 'hmacSecret'] as const;

const WITHOUT_SECRET_FIELDS = {
  if: {
    required: ['signatureAlgorithm'],
    properties: { signatureAlgorithm: { const: 'ed25519' } },
  },
  then: { properties: { hmacHeader: false, hmacSecret: false } },
};

const METHODS = ['basic', 'apiKey', 'hmac'] as const;

/** The rules between the fields of a new webhook, as far as JSON Schema can express them. */
export const CREATE_RULES = {
  oneOf: [
    { required: ['appId'], properties: { projectId: false, environmentId: false } },
    { required: ['projectId', 'environmentId'], properties: { appId: false } },
  ],
  allOf: [
    { if: has('basic'), then: { required: AUTH_FIELDS.basic }, else: without('basic') },
    { if: has('apiKey'), then: { required: AUTH_FIELDS.apiKey }, else: without('apiKey') },
    { if: { anyOf: [has('basic'), has('apiKey')] }, then: without('hmac') },
    { if: has('basic'), then: withoutCustomHeader('authorization') },
    {
      if: { not: { anyOf: [has('basic'), has('apiKey'), { required: ['hmacHeader'] }] } },
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
  allOf: [{ if: has('basic'), then: withoutCustomHeader('authorization') }, WITHOUT_SECRET_FIELDS],
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
  const headers = method === 'basic' ? withoutCustomHeader('authorization').properties : {};
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
