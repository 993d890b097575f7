import {
  type AuthBody,
  type AuthDraft,
  type AuthField,
  type AuthName,
  BLANK,
  methodOf,
  METHODS,
  shownFields,
  type StoredAuth,
} from './auth-draft.ts';
import { MASK } from './webhook-fields.ts';

/** Fields whose value may have spaces around it that belong to it. */
const AS_TYPED: ReadonlySet<AuthField> = new Set([
  'hmacSecret',
  'basicAuthUsername',
  'basicAuthPassword',
  'apiKey',
  'oauth2ClientId',
  'oauth2ClientSecret',
  'oauth2Audience',
]);

/** Returns what was chosen and typed in a form. */
export function readAuth(form: FormData, stored: StoredAuth | null): AuthDraft {
  const chosen = form.get('authMethod');
  const method = isMethod(chosen) ? chosen : methodOf(stored);
  const typed = METHODS[method].fields.flatMap((name) => {
    const value = form.get(name);
    return typeof value === 'string' ? [[name, plain(name, value)] as const] : [];
  });
  return { method, typed: Object.fromEntries(typed) };
}

export function isMethod(value: unknown): value is AuthName {
  return typeof value === 'string' && Object.hasOwn(METHODS, value);
}

function plain(name: AuthField, value: string): string {
  if (AS_TYPED.has(name)) return value;
  return value.trim() === '' && name === 'hmacHeader' ? BLANK.hmacHeader : value.trim();
}

/**
 * Returns the fields of a request that make of what is stored what was typed. What was not touched is not sent; an
 * empty secret keeps the stored one, and a mask is no secret.
 */
export function authBody({ method, typed }: AuthDraft, stored: StoredAuth | null): AuthBody {
  const before = shownFields(method, stored);
  const { fields, secret } = METHODS[method];
  const changed = fields.flatMap((name) => {
    const value = typed[name] ?? before[name];
    const isMask = name === secret && value === MASK;
    return isMask || value === before[name] ? [] : [[name, sent(name, value)]];
  });
  return {
    ...(method !== methodOf(stored) && { authMethod: method }),
    ...(Object.fromEntries(changed) as AuthBody),
  };
}

/** Null takes scope or audience away. */
function sent(name: AuthField, value: string): string | null {
  const isOptional = name === 'oauth2Scope' || name === 'oauth2Audience';
  return isOptional && value === '' ? null : value;
}

/** What decides whether a secret that is stored must be given again. */
export interface Asked {
  method: AuthName;
  stored: StoredAuth | null;
  seesSecrets: boolean;
  /** Whether the URL that was typed names another server than the stored one. */
  isMoved: boolean;
  /** What was typed as the token URL of `oauth2`. */
  tokenUrl?: string;
}

/**
 * Whether the stored secret would go to another server, and whoever asks may not see it: then it must be given again
 * (docs/contract.md C20.6). That of `hmac` signs, and is never sent.
 */
export function mustGiveAgain({
  method,
  stored,
  seesSecrets,
  isMoved,
  tokenUrl = '',
}: Asked): boolean {
  if (stored === null || seesSecrets || method === 'hmac' || method !== methodOf(stored)) {
    return false;
  }
  return isMoved || (stored.method === 'oauth2' && isOtherServer(tokenUrl, stored.tokenUrl));
}

/** Whether the request is refused unless this field holds something. */
export function isRequired(name: AuthField, asked: Asked): boolean {
  const { method, stored } = asked;
  const { required, secret } = METHODS[method];
  if (!required.includes(name)) return false;
  return name !== secret || isNewMethod(method, stored) || mustGiveAgain(asked);
}

/** Whether there is no secret yet that an empty field could keep. */
export function isNewMethod(method: AuthName, stored: StoredAuth | null): boolean {
  return stored === null || method !== methodOf(stored);
}

/** Whether two URLs differ in scheme, host or port. What is no URL yet names no server. */
export function isOtherServer(after: string, before: string): boolean {
  const origin = originOf(after.trim());
  return origin !== null && origin !== originOf(before);
}

/** `URL.parse` would say the same, but Safari before version 18 lacks it. */
function originOf(url: string): string | null {
  return URL.canParse(url) ? new URL(url).origin : null;
}
