import type { Header, Webhook } from '@posthorn/domain/webhook.ts';
import type { Problem } from '../../../http/api-error.ts';
import { isCredential, MASK } from '../../../http/responses/sent-headers.ts';
import {
  chosenAuth,
  nameOf,
  type AuthFields,
  type AuthName,
} from '../../../webhooks/auth-method.ts';

/** What of an update says where the secrets of a webhook go. */
export interface MovingFields extends AuthFields {
  url?: string | undefined;
  customHeaders?: Header[] | undefined;
}

/** The secret that each method sends to another server. That of `hmac` signs, and is never sent. */
const SENT_SECRETS = {
  basic: 'basicAuthPassword',
  apiKey: 'apiKey',
  oauth2: 'oauth2ClientSecret',
  hmac: null,
} as const satisfies Record<AuthName, keyof AuthFields | null>;

/** `********` stands for the value that the header of this name has (docs/contract.md C6.10). */
export function withKeptValues(headers: readonly Header[], { customHeaders }: Webhook): Header[] {
  return headers.map(({ key, value }) => ({
    key,
    value: value === MASK ? (valueOf(customHeaders, key) ?? value) : value,
  }));
}

/** A mask in place of a value that the webhook does not have would be sent as the value. */
export function maskProblems({ customHeaders = [] }: MovingFields, webhook: Webhook): Problem[] {
  return customHeaders.flatMap(({ key, value }, index) =>
    value === MASK && valueOf(webhook.customHeaders, key) === undefined
      ? [
          {
            path: `customHeaders.${index}.value`,
            message: 'is a mask, and no value of this header is stored',
          },
        ]
      : [],
  );
}

function valueOf(headers: readonly Header[], name: string): string | undefined {
  return headers.find(({ key }) => key.toLowerCase() === name.toLowerCase())?.value;
}

const MESSAGE =
  'must be given again: this update would send it to another server, and the caller may not see it';

/**
 * Returns the problems of an update by a caller who sees no secrets: with a URL of their own server they would read
 * every secret that the webhook keeps (docs/contract.md C20.6).
 */
export function movedSecretProblems(body: MovingFields, webhook: Webhook): Problem[] {
  const { url, oauth2TokenUrl } = body;
  const { authMethod } = webhook;
  const tokenUrl = authMethod.method === 'oauth2' ? authMethod.tokenUrl : undefined;
  const isMoved = isOtherServer(url, webhook.url);
  if (!isMoved && !isOtherServer(oauth2TokenUrl, tokenUrl)) return [];
  return [...credentialProblems(body, webhook), ...(isMoved ? movedHeaders(body, webhook) : [])];
}

/** Also another port, and http in place of https. */
function isOtherServer(after: string | undefined, before: string | undefined): boolean {
  if (after === undefined || before === undefined) return false;
  return new URL(after).origin !== new URL(before).origin;
}

/** Another method requires all of its own fields in any case. */
function credentialProblems(body: MovingFields, { authMethod }: Webhook): Problem[] {
  const chosen = chosenAuth(body, authMethod);
  const path = SENT_SECRETS[chosen];
  const isKept = chosen === nameOf(authMethod) && path !== null && body[path] === undefined;
  return isKept ? [{ path, message: MESSAGE }] : [];
}

function movedHeaders({ customHeaders }: MovingFields, webhook: Webhook): Problem[] {
  if (!customHeaders) {
    const hasSecret = webhook.customHeaders.some(({ key }) => isCredential(key));
    return hasSecret ? [{ path: 'customHeaders', message: MESSAGE }] : [];
  }
  return customHeaders.flatMap(({ key, value }, index) =>
    value === MASK && isCredential(key)
      ? [{ path: `customHeaders.${index}.value`, message: MESSAGE }]
      : [],
  );
}
