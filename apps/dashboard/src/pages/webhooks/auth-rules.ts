import type { components } from '@posthorn/client';
import { type FieldRule, MASK, WEBHOOK_RULES } from '@posthorn/client/rules';

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
  const typed = fieldsOf(method).flatMap((name) => {
    const value = form.get(name);
    return typeof value === 'string' ? [[name, plain(name, value)] as const] : [];
  });
  return { method, typed: Object.fromEntries(typed) };
}

export function isMethod(value: unknown): value is AuthName {
  return WEBHOOK_RULES.authMethod.choices.some((each) => each === value);
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
  const changed = fieldsOf(method).flatMap((name) => {
    const value = typed[name] ?? before[name];
    const isMask = isSecret(name) && value === MASK;
    return isMask || value === before[name] ? [] : [[name, sent(name, value)]];
  });
  return {
    ...(method !== methodOf(stored) && { authMethod: method }),
    ...(Object.fromEntries(changed) as AuthBody),
  };
}

/** Null takes scope or audience away. */
function sent(name: AuthField, value: string): string | null {
  return RULES[name].default === null && value === '' ? null : value;
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
  const { authMethod, isRequired } = RULES[name];
  if (authMethod !== method || !isRequired) return false;
  return !isSecret(name) || isNewMethod(method, stored) || mustGiveAgain(asked);
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

type UpdateBody = components['schemas']['UpdateWebhook'];

/** How a webhook authenticates, as the API shows it. */
export type StoredAuth = components['schemas']['AuthMethod'];
/** A method as requests name it; stored webhooks spell `apiKey` as `api_key`. */
export type AuthName = NonNullable<UpdateBody['authMethod']>;

type Rules = typeof WEBHOOK_RULES;
/** The name of a field of a method. */
export type AuthField = {
  [Name in keyof Rules]: Rules[Name] extends { shownAs: string } ? Name : never;
}[keyof Rules];

const RULES: Readonly<Record<AuthField, FieldRule>> = WEBHOOK_RULES;
const FIELDS = Object.entries<FieldRule>(WEBHOOK_RULES).flatMap(([name, { shownAs }]) =>
  shownAs === undefined ? [] : [{ name: name as AuthField, shownAs }],
);

/** What each field holds while nothing is stored for it. An empty header is not sent, and so is the default. */
export const BLANK = Object.fromEntries(
  FIELDS.map(({ name }) => [name, RULES[name].default ?? '']),
) as Readonly<Record<AuthField, string>>;

type AuthBody = Pick<UpdateBody, AuthField | 'authMethod'>;

/** What somebody has chosen and typed. Fields that the form does not show are missing. */
interface AuthDraft {
  method: AuthName;
  typed: Partial<Record<AuthField, string>>;
}

/** The fields of a method. */
const fieldsOf = (method: AuthName): AuthField[] =>
  FIELDS.map(({ name }) => name).filter((name) => RULES[name].authMethod === method);

const isSecret = (name: AuthField): boolean => RULES[name].type === 'secret';

/** The method of a webhook; that of a new one is `hmac` until another is chosen. */
export function methodOf(stored: StoredAuth | null): AuthName {
  if (stored === null) return WEBHOOK_RULES.authMethod.default;
  return stored.method === 'api_key' ? 'apiKey' : stored.method;
}

/** Returns what the fields of a method hold at first: what is stored for it, and never a secret. */
export function shownFields(method: AuthName, stored: StoredAuth | null): typeof BLANK {
  if (stored === null || methodOf(stored) !== method) return BLANK;
  const values = stored as Partial<Record<string, string | null>>;
  const shown = FIELDS.filter(({ name }) => RULES[name].authMethod === method && !isSecret(name));
  return {
    ...BLANK,
    ...Object.fromEntries(shown.map(({ name, shownAs }) => [name, values[shownAs] ?? BLANK[name]])),
  };
}
