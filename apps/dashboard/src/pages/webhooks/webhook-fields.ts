import type { components } from '@posthorn/client';
import { type FieldRule, WEBHOOK_RULES } from '@posthorn/client/rules';
import {
  changedOwnFields,
  isAtOneOf,
  linesOf,
  type OwnFields,
  readOwnFields,
} from '../../parts/form-fields.ts';
import { jsonOf } from './filter-rules.ts';
import { authBody, BLANK, readAuth, type StoredAuth } from './auth-rules.ts';

type Rules = typeof WEBHOOK_RULES;
type SignatureHeader = Rules['signatureHeaders']['entry']['choices'][number];

/** What people change most. The API has more: see the documentation. */
export interface WebhookFields extends OwnFields {
  url: string;
  name: string;
  eventTypes: readonly string[];
  filter: Readonly<Record<string, unknown>> | null;
  rateLimitPerSecond: number | null;
  timeoutSeconds: number | null;
  maxAttempts: number | null;
  finalStatusCodes: readonly number[] | null;
  onGone: Rules['onGone']['choices'][number];
  obeyControlHeaders: boolean;
  ordering: Rules['ordering']['choices'][number];
  customHeaders: readonly { key: string; value: string }[];
  signatureHeaders: readonly SignatureHeader[];
  disabled: boolean;
}

type Defaults = {
  [Name in keyof Rules as Rules[Name] extends { default: unknown } ? Name : never]: Extract<
    Rules[Name],
    { default: unknown }
  >['default'];
};

const DEFAULTS = Object.fromEntries(
  Object.entries<FieldRule>(WEBHOOK_RULES).map(([name, rule]) => [name, rule.default]),
) as Defaults;

export const NEW_WEBHOOK: WebhookFields = { ...DEFAULTS, url: '', name: '' };

/** Returns the body of a request that creates a webhook from what was typed. */
export function readWebhookForm(form: FormData) {
  const secret = form.get('secret');
  return {
    ...readFields(form),
    ...readOwnFields(form),
    ...(typeof secret === 'string' && secret.trim() !== '' && { secret: secret.trim() }),
  };
}

function readFields(form: FormData) {
  const textOf = (name: string): string => {
    const value = form.get(name);
    return typeof value === 'string' ? value.trim() : '';
  };
  const numberOf = (name: string): number | null =>
    textOf(name) === '' ? null : Number(textOf(name));
  return {
    url: textOf('url'),
    ...(textOf('name') !== '' && { name: textOf('name') }),
    eventTypes: linesOf(textOf('eventTypes')),
    filter: jsonOf(textOf('filter')) as WebhookFields['filter'],
    rateLimitPerSecond: numberOf('rateLimitPerSecond'),
    timeoutSeconds: numberOf('timeoutSeconds'),
    maxAttempts: numberOf('maxAttempts'),
    finalStatusCodes: statusCodesOf(textOf('finalStatusCodes')),
    onGone: form.get('disablesWhenGone') === null ? ('retry' as const) : ('disable' as const),
    obeyControlHeaders: form.get('obeyControlHeaders') !== null,
    ordering: (textOf('ordering') || DEFAULTS.ordering) as WebhookFields['ordering'],
    customHeaders: linesOf(textOf('customHeaders')).map(headerOf),
    signatureHeaders: signatureHeaders(form.get('hasSvixHeaders') !== null),
    disabled: form.get('isEnabled') === null,
  };
}

/** Returns what was changed of the stored fields: what was not touched is not sent, and so cannot be damaged. */
export function changedFields(
  form: FormData,
  stored: WebhookFields,
): Partial<ReturnType<typeof readFields> & OwnFields> {
  const before: Record<string, unknown> = {
    ...stored,
    customHeaders: linesOf(headersText(stored.customHeaders)).map(headerOf),
    signatureHeaders: signatureHeaders(hasSvix(stored)),
  };
  const isChanged = ([name, value]: [string, unknown]): boolean =>
    JSON.stringify(value) !== JSON.stringify(before[name]);
  return {
    ...Object.fromEntries(Object.entries(readFields(form)).filter(isChanged)),
    ...changedOwnFields(form, stored),
  };
}

/** Statuses with commas or spaces between them. The API refuses what is no number: it is null in JSON. */
function statusCodesOf(text: string): number[] | null {
  const codes = text.split(/[\s,]+/).filter((each) => each !== '');
  return codes.length === 0 ? null : codes.map(Number);
}

/** Whether deliveries also have the headers of Svix, in whatever order the client has given the two. */
export const hasSvix = (fields: Pick<WebhookFields, 'signatureHeaders'>): boolean =>
  fields.signatureHeaders.includes('svix');

const signatureHeaders = (withSvix: boolean): SignatureHeader[] =>
  withSvix ? ['webhook', 'svix'] : ['webhook'];

/** One header on each line. */
export const headersText = (headers: WebhookFields['customHeaders']): string =>
  headers.map(({ key, value }) => `${key}: ${value}`).join('\n');

function headerOf(line: string): { key: string; value: string } {
  const [key = '', ...rest] = line.split(':');
  return { key: key.trim(), value: rest.join(':').trim() };
}

/** Returns the body of a request that creates a webhook, but for its owner. */
export function bodyIn(form: FormData) {
  return { ...readWebhookForm(form), ...authBody(readAuth(form, null), null), ...tlsBody(form) };
}

/** Returns what a form changes of a webhook. */
export function changesIn(form: FormData, stored: WebhookFields & { authMethod: StoredAuth }) {
  const { authMethod } = stored;
  return {
    ...changedFields(form, stored),
    ...authBody(readAuth(form, authMethod), authMethod),
    ...tlsBody(form),
  };
}

type TlsBody = Pick<components['schemas']['UpdateWebhook'], 'tls'>;

export const TLS_PARTS = ['certificate', 'key', 'ca'] as const;

/** Returns the TLS settings that a form asks for. Without any, those that the webhook has stay. */
export function tlsBody(form: FormData): TlsBody {
  if (form.get('isTlsRemoved') !== null) return { tls: null };
  const given = TLS_PARTS.flatMap((part) => {
    const pem = form.get(`tls.${part}`);
    return typeof pem === 'string' && pem.trim() !== '' ? [[part, pem.trim()] as const] : [];
  });
  return given.length === 0 ? {} : { tls: Object.fromEntries(given) };
}

/** Whether a field of the form of a webhook says what is wrong. */
export const hasField = isAtOneOf([
  'url',
  'name',
  'uid',
  'eventTypes',
  'filter',
  'secret',
  'signatureHeaders',
  'rateLimitPerSecond',
  'timeoutSeconds',
  'maxAttempts',
  'finalStatusCodes',
  'onGone',
  'obeyControlHeaders',
  'ordering',
  'customHeaders',
  'metadata',
  'authMethod',
  ...Object.keys(BLANK),
  ...TLS_PARTS.map((part) => `tls.${part}`),
]);
