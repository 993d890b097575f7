import { createHash } from 'node:crypto';
import { REFUSED_HEADERS, WEBHOOK_RULES } from '@posthorn/client/rules';
import { type DocumentOf, Secret, UID, type WebhookFields } from '../plan/documents.ts';
import type { MappedEventType } from './event-types.ts';
import { isJson } from './peer-api.ts';

/*
 * What all services that are imported from have in common: names, ids, headers, event types, limits and secrets in the
 * bounds of docs/contract.md C5 and C6, and a finding for each thing that does not fit. All functions are pure.
 */

/** What a person has to know of something that was read. */
export interface Finding {
  kind: FindingKind;
  /** The same text for the same thing at many objects, such as `channels`. */
  about: string;
  /** Of this one object. Never a secret. */
  detail?: string;
}

/** With what they say, in the order of the report. */
export const FINDING_KINDS = {
  failed: 'could not be read or written',
  heldBack: 'comes over disabled, because it would receive other deliveries than before',
  receiver: 'its receiver has to change',
  byHand: 'has to be set by hand',
  changed: 'comes over changed',
  leftOut: 'has no counterpart',
} as const;
export type FindingKind = keyof typeof FINDING_KINDS;

export type Note = (kind: FindingKind, about: string, detail?: string) => void;

/** An app in terms of Posthorn. */
export interface MappedApp {
  kind: 'App';
  document: DocumentOf<'App'>;
  findings: readonly Finding[];
}

/** An endpoint in terms of Posthorn. */
export interface MappedWebhook {
  kind: 'Webhook';
  document: DocumentOf<'Webhook'>;
  /** The app that it belongs to, which may have been there before. */
  app: DocumentOf<'App'>;
  /** Used when another app has a webhook with the uid: those of Posthorn are unique in the company, not in the app. */
  qualifiedUid: string;
  /** Whether to create it disabled although it is enabled. What exists already keeps its state. */
  isHeldBack: boolean;
  /** Names of headers whose values cannot be read. What the webhook has of them already stays. */
  keptHeaders: readonly string[];
  findings: readonly Finding[];
}

/** Something of which nothing comes over. `object` names it for people. */
export interface Unmapped {
  kind: 'Unmapped';
  object: string;
  findings: readonly Finding[];
}

export type Mapped = MappedApp | MappedEventType | MappedWebhook | Unmapped;

/** Where apps come to. */
export interface Target {
  /** An id, or `uid:` and a uid. */
  projectId: string;
  environment: 'development' | 'production';
  /** The ids of what is read; all when there are none. */
  only: readonly string[];
}

/** A finding for something that could not be read. */
export function unreadable(object: string, about: string, { message }: Error): Unmapped {
  return { kind: 'Unmapped', object, findings: [{ kind: 'failed', about, detail: message }] };
}

/** Collects the findings of one object. */
export function collectFindings(): { findings: Finding[]; note: Note } {
  const findings: Finding[] = [];
  return {
    findings,
    note: (kind, about, detail) =>
      findings.push({ kind, about, ...(detail === undefined ? {} : { detail }) }),
  };
}

/**
 * Returns the uid of an object: its own, else its id. An id with other characters, or a longer one, becomes the same
 * text for the same id, so that a second import finds the object again. The report names it: applications know the object
 * by what it had.
 */
export function uidOf(own: string | undefined, id: string, note: Note): string {
  const known = own ?? id;
  if (UID.test(known)) return known;
  const uid = UID.test(id) ? id : digestOf(id);
  const about = 'ids and uids that are none here: the uid is another one (docs/migrate.md)';
  note('changed', about, `${known} → uid:${uid}`);
  return uid;
}

/** Returns a uid of two parts. */
export function qualify(appUid: string, uid: string): string {
  const qualified = `${appUid}.${uid}`;
  return UID.test(qualified) ? qualified : digestOf(qualified);
}

const digestOf = (text: string): string =>
  `id-${createHash('sha256').update(text).digest('hex').slice(0, 40)}`;

const { minChars: MIN_NAME, maxChars: MAX_NAME } = WEBHOOK_RULES.name;

/** Returns the name, or the fallback where it is too short. A longer name is cut. */
export function nameOf(name: string | undefined, fallback: string, note: Note): string {
  const given = Array.from(name?.trim() ?? '');
  const named = fallback.length < MIN_NAME ? `uid ${fallback}` : fallback;
  const chars = given.length < MIN_NAME ? Array.from(named) : given;
  if (chars.length > MAX_NAME) note('changed', `names longer than ${MAX_NAME} characters are cut`);
  return chars.slice(0, MAX_NAME).join('');
}

/** The whole of a description that is longer than a name, for the metadata. */
export function longDescription(description = ''): string | undefined {
  return Array.from(description).length > MAX_NAME ? metadataText(description) : undefined;
}

const { maxEntries, maxBytes, parts: METADATA } = WEBHOOK_RULES.metadata;
const [MAX_KEY, MAX_VALUE] = [METADATA.key.maxChars, METADATA.value.maxChars];

/** Cuts a text that is too long for the metadata. Half a character would be refused. */
export function metadataText(text: string): string {
  return Array.from(text).slice(0, MAX_VALUE).join('');
}

/** Returns the entries that fit; of those of the import itself, all do. */
export function metadataOf(
  given: unknown,
  own: Readonly<Record<string, string | undefined>>,
  note: Note,
): Record<string, string> {
  const fitting: [string, string][] = [];
  for (const [key, value] of [
    ...Object.entries(own),
    ...(isJson(given) ? Object.entries(given) : []),
  ]) {
    if (value === undefined || value === null) continue;
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    const bytes = Buffer.byteLength(JSON.stringify(Object.fromEntries([...fitting, [key, text]])));
    const fits =
      key !== '__proto__' &&
      key.length >= 1 &&
      Array.from(key).length <= MAX_KEY &&
      Array.from(text).length <= MAX_VALUE &&
      fitting.length < maxEntries &&
      bytes <= maxBytes;
    if (fits) fitting.push([key, text]);
    else note('leftOut', BEYOND_METADATA, key);
  }
  return Object.fromEntries(fitting);
}

const BEYOND_METADATA = `metadata beyond ${maxEntries} entries, keys of ${MAX_KEY} and values of ${MAX_VALUE} characters`;

const EVENT_TYPE = new RegExp(WEBHOOK_RULES.eventTypes.entry.pattern);
const MAX_EVENT_TYPES = WEBHOOK_RULES.eventTypes.maxEntries;

/**
 * Returns the event types of a webhook in one order, since services that keep them as sets list them in any. Null when it selects some and none of them can be had, or too many: an empty
 * list would select all.
 */
export function eventTypesOf(given: readonly string[], note: Note): string[] | null {
  const unique = [...new Set(given)].toSorted();
  const fitting = unique.filter((type) => EVENT_TYPE.test(type));
  for (const type of unique.filter((each) => !EVENT_TYPE.test(each))) {
    note('leftOut', 'event types that are no name here, nor a beginning such as order.*', type);
  }
  if (unique.length === 0 || (fitting.length > 0 && fitting.length <= MAX_EVENT_TYPES))
    return fitting;
  note('heldBack', `more than ${MAX_EVENT_TYPES} event types, or none that Posthorn takes`);
  return null;
}

type FilterField = Exclude<WebhookFields['filter'], undefined>;

/**
 * Returns the filter, or null and `isHeldBack` when Posthorn cannot apply it: without it the webhook would receive other
 * messages than before.
 */
export function filterOf(
  filter: FilterField,
  note: Note,
): { filter: FilterField; isHeldBack: boolean } {
  const bytes = filter ? Buffer.byteLength(JSON.stringify(filter)) : 0;
  if (filter && bytes <= WEBHOOK_RULES.filter.maxBytes) return { filter, isHeldBack: false };
  note('heldBack', 'filters that are larger than here, or about other parts of a message');
  return { filter: null, isHeldBack: true };
}

/** Returns attempts per second; null for no limit. */
export function rateOf(count: number | undefined, seconds: number, note: Note): number | null {
  if (count === undefined || count <= 0 || seconds <= 0) return null;
  const { min, max } = WEBHOOK_RULES.rateLimitPerSecond;
  const rate = count / seconds;
  const fitting = Math.min(Math.max(Math.floor(rate), min), max);
  if (fitting !== rate) {
    const range = `from ${min} to ${max.toLocaleString('en')}`;
    note(
      'changed',
      `rate limits become whole numbers per second, ${range}`,
      `${count} in ${seconds} s`,
    );
  }
  return fitting;
}

/** Returns seconds for one attempt; null for those of the service. */
export function timeoutOf(seconds: number | undefined, note: Note): number | null {
  if (seconds === undefined || seconds <= 0) return null;
  const { min, max } = WEBHOOK_RULES.timeoutSeconds;
  const fitting = Math.min(Math.max(Math.ceil(seconds), min), max);
  if (fitting !== seconds) {
    note('changed', `time limits become whole seconds, from ${min} to ${max}`, `${seconds} s`);
  }
  return fitting;
}

const HEADERS = WEBHOOK_RULES.customHeaders;
const HEADER_NAME = new RegExp(HEADERS.parts.key.pattern);
const HEADER_VALUE = new RegExp(HEADERS.parts.value.pattern);
/** Also that of the signature (docs/contract.md C9.4), which the webhook sets itself. */
const REFUSED_NAMES: ReadonlySet<string> = new Set([
  ...REFUSED_HEADERS.names,
  WEBHOOK_RULES.hmacHeader.default.toLowerCase(),
]);

const isRefused = (name: string): boolean =>
  REFUSED_NAMES.has(name) || REFUSED_HEADERS.prefixes.some((prefix) => name.startsWith(prefix));

const isHeaderValue = (value: unknown): value is string =>
  typeof value === 'string' &&
  value.length <= HEADERS.parts.value.maxChars &&
  HEADER_VALUE.test(value);

export type CustomHeaders = { key: string; value: Secret }[];

/**
 * Returns the headers that a webhook of Posthorn may set, in one order. Their values are secrets: many are credentials.
 */
export function headersOf(given: unknown, source: string, note: Note): CustomHeaders {
  const fitting: CustomHeaders = [];
  const names = new Set<string>();
  let bytes = 0;
  for (const [key, value] of isJson(given) ? Object.entries(given) : []) {
    const name = key.toLowerCase();
    const text = typeof value === 'string' ? value : '';
    const size = Buffer.byteLength(key) + Buffer.byteLength(text);
    if (isRefused(name) || !HEADER_NAME.test(key)) {
      note('leftOut', 'headers that Posthorn or the connection sets', key);
    } else if (!isHeaderValue(value) || names.has(name)) {
      note('leftOut', 'headers with values that cannot arrive as they are, or twice', key);
    } else if (fitting.length === HEADERS.maxEntries || bytes + size > HEADERS.maxBytes) {
      note('leftOut', `headers beyond ${HEADERS.maxEntries}, or ${HEADERS.maxBytes} bytes`, key);
    } else {
      names.add(name);
      bytes += size;
      fitting.push({ key, value: new Secret(source, value) });
    }
  }
  return inOrder(fitting);
}

/** Sorts headers by name: services keep them as maps, whose order may be another one each time. */
export function inOrder<T extends { key: string }>(headers: readonly T[]): T[] {
  const nameOf = ({ key }: T): string => key.toLowerCase();
  return headers.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
}

/**
 * Returns the URL without what Posthorn refuses in one. User and password become the header that they stand for, unless
 * there is one already, or no room for it; null for one that OAuth 2 sets.
 */
export function urlOf(
  given: string,
  headers: CustomHeaders | null,
  source: string,
  note: Note,
): string {
  if (!URL.canParse(given)) return given;
  const url = new URL(given);
  const { username, password } = url;
  if (username === '' && password === '' && url.hash === '') return given;
  if (username !== '' || password !== '') {
    const isFree = headers?.every(({ key }) => key.toLowerCase() !== 'authorization') ?? false;
    if (!headers || !isFree) {
      note('leftOut', 'user and password in the URL, beside another Authorization');
    } else if (headers.length === HEADERS.maxEntries) {
      note('leftOut', `user and password in the URL, beside ${HEADERS.maxEntries} headers`);
    } else {
      headers.push({ key: 'Authorization', value: basicAuth(username, password, source) });
      note('changed', 'user and password in the URL become the header Authorization');
    }
  }
  url.username = '';
  url.password = '';
  url.hash = '';
  return url.href;
}

function basicAuth(username: string, password: string, source: string): Secret {
  const pair = `${decoded(username)}:${decoded(password)}`;
  return new Secret(source, `Basic ${Buffer.from(pair).toString('base64')}`);
}

/** A `%` that encodes nothing stays. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const SECRET = new RegExp(WEBHOOK_RULES.secret.pattern);

/**
 * Returns a secret in the form of Standard Webhooks, `whsec_` and padded base64; null when it cannot be one, or has too
 * few or too many bytes. The prefix and the padding may be missing.
 */
export function standardSecretOf(given: string): string | null {
  const base64 = given.replace(/^whsec_/, '').replace(/=+$/, '');
  const padded = Buffer.from(base64, 'base64').toString('base64');
  const secret = `whsec_${padded}`;
  // Other text than the base64 of these bytes would be another secret to some libraries.
  return padded.replace(/=+$/, '') === base64 && SECRET.test(secret) ? secret : null;
}

/** The document of a webhook of an app. */
export function webhookDocument(
  app: DocumentOf<'App'>,
  { uid, source }: { uid: string; source: string },
  fields: WebhookFields,
): DocumentOf<'Webhook'> {
  return { kind: 'Webhook', uid, source, fields: { ...fields, appId: `uid:${app.uid}` } };
}
