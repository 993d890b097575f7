import type { CreateApp, CreateEventType, CreateProject, CreateWebhook } from '@posthorn/client';
import {
  APP_RULES,
  type Bounds,
  EVENT_TYPE_RULES,
  type FieldRule,
  MASK,
  PROJECT_RULES,
  WEBHOOK_RULES,
} from '@posthorn/client/rules';
import { isMap, isScalar, isSeq, LineCounter, parseAllDocuments } from 'yaml';
import { UsageFailure } from '../failures.ts';

/*
 * The documents that `apply` takes: what a project, event type, app or webhook shall be. A field that is left out stays
 * as it is, and null takes it away (docs/contract.md C1.13).
 */

/**
 * In the order in which they are applied: references lead to the kinds before, and a webhook may select event types that its
 * project has by then only (docs/contract.md C28.8).
 */
export const KINDS = ['Project', 'EventType', 'App', 'Webhook'] as const;
export type Kind = (typeof KINDS)[number];

/** A secret that a document names. Its value is never printed. */
export class Secret {
  /** The environment variable, or another source, for people. */
  readonly source: string;
  readonly #value: string | undefined;

  /** Undefined: the source has none, and the secret that is stored stays. */
  constructor(source: string, value: string | undefined) {
    this.source = source;
    this.#value = value;
  }

  get isGiven(): boolean {
    return this.#value !== undefined;
  }

  reveal(): string | undefined {
    return this.#value;
  }

  toJSON(): string {
    return `secret from ${this.source}`;
  }
}

type Rules = typeof WEBHOOK_RULES;
type SecretField = {
  [Name in keyof Rules]: Rules[Name] extends { type: 'secret' } ? Name : never;
}[keyof Rules];

export type ProjectFields = Omit<CreateProject, 'uid'>;
/** `projectId` is an id, or `uid:` and a uid. */
export type AppFields = Omit<CreateApp, 'uid'>;
/** `projectId` as that of an app. */
export type EventTypeFields = Omit<CreateEventType, 'name'> & { projectId: string };
/** `appId` and `projectId` are ids, or `uid:` and a uid. */
export type WebhookFields = Omit<CreateWebhook, 'uid' | 'customHeaders' | 'tls' | SecretField> &
  Partial<Record<SecretField, Secret | null | undefined>> & {
    customHeaders?: readonly HeaderFields[] | null;
    tls?: TlsFields | null;
  };

export interface HeaderFields {
  key: string;
  value: string | Secret;
}

/** In PEM. */
export interface TlsFields {
  certificate?: string;
  key?: Secret;
  ca?: string;
}

interface FieldsByKind {
  Project: ProjectFields;
  EventType: EventTypeFields;
  App: AppFields;
  Webhook: WebhookFields;
}

export interface DocumentOf<K extends Kind> {
  kind: K;
  /** Of an event type, which has none, its `projectId` and its name: `uid:shop/order.paid`. */
  uid: string;
  /** Where it is written, for people. */
  source: string;
  fields: FieldsByKind[K];
}

export type Document = { [K in Kind]: DocumentOf<K> }[Kind];

export type AuthMethod = NonNullable<CreateWebhook['authMethod']>;

/** The fields of each kind, in the order in which an export has them. A document has its uid or name beside them. */
export const FIELD_RULES: Readonly<Record<Kind, Readonly<Record<string, FieldRule>>>> = {
  Project: withoutUid(PROJECT_RULES),
  EventType: eventTypeRules(),
  App: withoutUid(APP_RULES),
  Webhook: withoutUid(WEBHOOK_RULES),
};

function withoutUid<Rules extends { uid: FieldRule }>({ uid: _uid, ...fields }: Rules) {
  return fields;
}

function eventTypeRules() {
  const { name: _name, ...fields } = EVENT_TYPE_RULES;
  return { projectId: APP_RULES.projectId, ...fields };
}

/** Returns the project and the name of an event type. No id or uid of a project has a `/`. */
export function eventTypeKeyOf(uid: string): { project: string; name: string } {
  const end = uid.indexOf('/');
  return { project: uid.slice(0, end), name: uid.slice(end + 1) };
}

/** A file, or standard input. */
export interface SourceText {
  name: string;
  text: string;
}

type Env = Readonly<Record<string, string | undefined>>;

/** Of all sources together. The parser needs about 100 times as much memory. */
export const MAX_SOURCE_BYTES = 8_388_608;
const MAX_DOCUMENTS = 20_000;
/** Nodes that aliases of one document may repeat. */
const MAX_ALIASES = 100;
const MAX_PROBLEMS = 20;
export const UID = new RegExp(PROJECT_RULES.uid.pattern);
const EVENT_TYPE_NAME = new RegExp(EVENT_TYPE_RULES.name.pattern);

/** Reads YAML, of which JSON is a part. Throws a UsageFailure with the problems, by file and line. */
export function parseDocuments(sources: readonly SourceText[], env: Env): Document[] {
  const bytes = sources.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
  if (bytes > MAX_SOURCE_BYTES) {
    throw new UsageFailure(`The documents have more than ${MAX_SOURCE_BYTES} bytes`);
  }
  const problems: string[] = [];
  const entries = sources.flatMap((source) => entriesOf(source, problems));
  if (entries.length > MAX_DOCUMENTS) {
    throw new UsageFailure(`There are more than ${MAX_DOCUMENTS} documents`);
  }
  const documents = entries.flatMap((entry) => readEntry(entry, env, problems) ?? []);
  problems.push(...repeatedUids(documents));
  if (problems.length === 0) return documents;
  const others = problems.length - MAX_PROBLEMS;
  const shown = [...problems.slice(0, MAX_PROBLEMS), ...(others > 0 ? [`and ${others} more`] : [])];
  const head = problems.length === 1 ? [] : [`The documents have ${problems.length} problems:`];
  throw new UsageFailure([...head, ...shown].join('\n  '));
}

/** One document, or one item of a document that is a list. */
interface Entry {
  value: Readonly<Record<string, unknown>>;
  /** Returns file and line of a field, or of the document itself. */
  placeOf: (field?: string) => string;
}

function entriesOf(source: SourceText, problems: string[]): Entry[] {
  const lines = new LineCounter();
  try {
    const parsed = parseAllDocuments(source.text, {
      version: '1.2',
      lineCounter: lines,
      prettyErrors: false,
      stringKeys: true,
      logLevel: 'silent',
    });
    const all = [...parsed];
    const lineAt = (offset: number | undefined): number => lines.linePos(offset ?? 0).line;
    const faults = all.flatMap((each) => [...each.errors, ...each.warnings]);
    problems.push(
      ...faults.map(({ pos, message }) => `${source.name}:${lineAt(pos[0])}: ${message}`),
    );
    if (faults.length > 0) return [];
    return all.flatMap((each) => {
      const { contents } = each;
      const nodes = isSeq(contents) ? contents.items : [contents];
      const value: unknown = each.toJS({ maxAliasCount: MAX_ALIASES });
      const values = isSeq(contents) ? (value as unknown[]) : [value];
      return values.flatMap((item, index): Entry[] => {
        // Between two marks there may be nothing but comments.
        if (item === null) return [];
        const node = nodes[index];
        const placeOf = (field?: string): string =>
          `${source.name}:${lineAt(offsetOf(node, field))}`;
        if (isRecord(item) && isMap(node)) return [{ value: item, placeOf }];
        problems.push(`${placeOf()}: must have kind, uid or name, and fields`);
        return [];
      });
    });
  } catch (error) {
    // Aliases beyond the limit, and nesting that exceeds the stack.
    problems.push(`${source.name}: ${error instanceof Error ? error.message : String(error)}`);
    return [];
  }
}

function offsetOf(node: unknown, field: string | undefined): number | undefined {
  if (!isMap(node)) return (node as { range?: [number] } | null | undefined)?.range?.[0];
  const pair = node.items.find(({ key }) => isScalar(key) && key.value === field);
  const key = pair && isScalar(pair.key) ? pair.key : node;
  return key.range?.[0];
}

function readEntry({ value, placeOf }: Entry, env: Env, problems: string[]): Document | null {
  const { kind } = value;
  const known = problems.length;
  const report = (field: string | undefined, message: string): void => {
    problems.push(`${placeOf(field)}: ${message}`);
  };
  if (!isKind(kind)) {
    report('kind', `kind must be ${KINDS.join(', ')}${kind === undefined ? '' : nameOf(kind)}`);
    return null;
  }
  const { uid, title, given, problem } = identityOf(kind, value);
  if (problem) {
    report(problem.field, problem.message);
    return null;
  }
  const rules = FIELD_RULES[kind];
  const fields = Object.entries(given).flatMap(([name, field]) => {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    const result = rule ? readField(rule, field, env) : { problem: 'is not a field of this kind' };
    if ('problem' in result) report(name, `${title}: ${name} ${result.problem}`);
    return 'value' in result ? [[name, result.value] as const] : [];
  });
  for (const [name, { isRequired, authMethod }] of Object.entries(rules)) {
    const isMissing = isRequired && !authMethod && given[name] === undefined;
    if (isMissing) report(undefined, `${title}: ${name} is missing`);
  }
  if (problems.length > known) return null;
  return { kind, uid, source: placeOf(), fields: Object.fromEntries(fields) } as Document;
}

interface Identity {
  /** As a document has it. */
  uid: string;
  /** For people. */
  title: string;
  given: Entry['value'];
  problem: { field: string; message: string } | null;
}

/** Returns what tells a document from the others of its kind, and its other fields. */
function identityOf(kind: Kind, value: Entry['value']): Identity {
  if (kind === 'EventType') return identityOfEventType(value);
  const { kind: _kind, uid, ...given } = value;
  const isValid = typeof uid === 'string' && UID.test(uid);
  const { maxChars } = PROJECT_RULES.uid;
  const message = `uid must be 1 to ${maxChars} letters, digits or . _ -`;
  const problem = isValid ? null : { field: 'uid', message };
  return { uid: String(uid), title: `${kind} ${String(uid)}`, given, problem };
}

function identityOfEventType({ kind, name, ...given }: Entry['value']): Identity {
  const { maxChars, refused } = EVENT_TYPE_RULES.name;
  const isValid =
    typeof name === 'string' &&
    EVENT_TYPE_NAME.test(name) &&
    !refused.some((each) => each === name);
  const message = `name must be 1 to ${maxChars} letters, digits or . _ : / -, and more than dots`;
  const uid = `${String(given.projectId)}/${String(name)}`;
  const title = `${String(kind)} ${String(name)}`;
  return { uid, title, given, problem: isValid ? null : { field: 'name', message } };
}

function isKind(kind: unknown): kind is Kind {
  return KINDS.some((each) => each === kind);
}

function nameOf(kind: unknown): string {
  return typeof kind === 'string' ? `, not ${kind}` : '';
}

type Result = { value: unknown } | { problem: string };

function readField(rule: FieldRule, given: unknown, env: Env): Result {
  const { type, isRequired, authMethod } = rule;
  if (given === null) {
    return isRequired && !authMethod ? { problem: 'must not be null' } : { value: null };
  }
  switch (type) {
    case 'text':
    case 'time':
    case 'url':
      return typeof given === 'string' ? { value: given } : { problem: textProblem(given) };
    case 'flag':
      return typeof given === 'boolean' ? { value: given } : { problem: 'must be true or false' };
    case 'number':
      return Number.isFinite(given) ? { value: given } : { problem: 'must be a number' };
    case 'numbers':
      return Array.isArray(given) && given.every((each) => Number.isFinite(each))
        ? { value: given }
        : { problem: 'must be a list of numbers' };
    case 'texts':
      return isTexts(given) ? { value: given } : { problem: 'must be a list of text' };
    case 'pairs':
      return isRecord(given) && isTexts(Object.values(given))
        ? { value: given }
        : { problem: 'must have text for each key: put numbers and true in quotes' };
    case 'json':
      return isRecord(given) ? { value: given } : { problem: 'must be an object' };
    case 'secret':
      return readSecret(given, env, rule);
    case 'headers':
      return readHeaders(given, env);
    case 'object':
      return readTls(given, env);
  }
}

function textProblem(given: unknown): string {
  return typeof given === 'object' ? 'must be text' : 'must be text: put it in quotes';
}

/** `{secretFrom: {env: NAME}}`. An empty variable is none: it is what many CI systems make of a missing secret. */
function readSecret(given: unknown, env: Env, rule?: Bounds): Result {
  const from = isRecord(given) && hasOnly(given, ['secretFrom']) ? given.secretFrom : null;
  const name = isRecord(from) && hasOnly(from, ['env']) ? from.env : null;
  if (typeof name !== 'string' || name === '') {
    return { problem: 'is a secret: write {secretFrom: {env: NAME}}' };
  }
  const value = env[name] === '' ? undefined : env[name];
  const problem = value !== undefined && rule ? problemOfSecret(value, rule) : null;
  return problem === null
    ? { value: new Secret(name, value) }
    : { problem: `from ${name} ${problem}` };
}

/** What the API would refuse, so that an apply does not stop at it half-way. */
function problemOfSecret(
  value: string,
  { minChars = 0, maxChars = Infinity, pattern }: Bounds,
): string | null {
  const chars = Array.from(value).length;
  if (chars < minChars || chars > maxChars)
    return `must have ${minChars} to ${maxChars} characters`;
  if (pattern === undefined || new RegExp(pattern).test(value)) return null;
  return pattern.startsWith('^whsec_')
    ? 'must be whsec_ and the base64 of 24 to 64 bytes'
    : 'has characters that cannot be sent';
}

function readHeaders(given: unknown, env: Env): Result {
  const results = Array.isArray(given) ? given.map((each: unknown) => readHeader(each, env)) : null;
  if (!results) return { problem: 'must be a list of {key, value}' };
  const wrong = results.find((each) => 'problem' in each);
  return wrong ?? { value: results.flatMap((each) => ('value' in each ? [each.value] : [])) };
}

function readHeader(given: unknown, env: Env): Result {
  if (!isRecord(given) || !hasOnly(given, ['key', 'value']) || typeof given.key !== 'string') {
    return { problem: 'must be a list of {key, value}' };
  }
  const { key, value } = given;
  if (value === MASK) return { problem: `has a mask for ${key}: write {secretFrom: {env: NAME}}` };
  if (typeof value === 'string') return { value: { key, value } };
  const secret = readSecret(value, env);
  if ('value' in secret) return { value: { key, value: secret.value } };
  return { problem: `must have text or {secretFrom: {env: NAME}} for ${key}` };
}

function readTls(given: unknown, env: Env): Result {
  if (!isRecord(given) || !hasOnly(given, ['certificate', 'key', 'ca'])) {
    return { problem: 'must have certificate, key and ca' };
  }
  const { key, ...certificates } = given;
  if (!isTexts(Object.values(certificates))) return { problem: 'must have certificates in PEM' };
  if (key === undefined) return { value: certificates };
  const secret = readSecret(key, env);
  if ('value' in secret) return { value: { ...certificates, key: secret.value } };
  return { problem: 'must have {secretFrom: {env: NAME}} for key' };
}

function repeatedUids(documents: readonly Document[]): string[] {
  const first = new Map<string, string>();
  return documents.flatMap(({ kind, uid, source }) => {
    const name = `${kind} ${uid}`;
    const before = first.get(name);
    if (before === undefined) first.set(name, source);
    return before === undefined ? [] : [`${source}: ${name} is also at ${before}`];
  });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

function hasOnly(value: object, names: readonly string[]): boolean {
  return Object.keys(value).every((name) => names.includes(name));
}
