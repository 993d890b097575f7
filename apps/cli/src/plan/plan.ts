import { X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import {
  type FieldRule,
  MASK,
  PROJECT_RULES,
  UNUSED_WITH_ED25519,
  WEBHOOK_RULES,
} from '@posthorn/client/rules';
import {
  type Document,
  eventTypeKeyOf,
  FIELD_RULES,
  type HeaderFields,
  type Kind,
  KINDS,
  Secret,
  type TlsFields,
} from './documents.ts';

/*
 * Decides what makes the present objects equal to the documents. Everything here is a pure function; adapter.ts reads
 * the objects and makes the changes.
 *
 * A secret is compared where the API shows the stored one, which it does to a key with `webhooks:write`. No fingerprint of
 * a secret is stored beside it: metadata is readable for more people than secrets are. The private key of `tls` is the
 * only secret that the API never shows, and its certificate, whose fingerprint it shows, has one private key.
 */

/** A project, event type, app or webhook as the API has it, by the names of the fields of a creation. */
export interface PresentObject {
  kind: Kind;
  id: string;
  uid: string | null;
  /**
   * Secrets that the API does not show to this key are `********`, owners are ids, and `tls` is PresentTls. What is not known
   * is left out, and counts as equal.
   */
  fields: Readonly<Record<string, unknown>>;
}

/** SHA-256 of the certificates, as the API shows them. */
export interface PresentTls {
  certificate: readonly string[];
  ca: readonly string[];
}

export interface Present {
  objects: readonly PresentObject[];
  /** Returns the id that a reference of a document stands for; null when nothing has the uid. */
  idOf: (kind: Kind, reference: string) => string | null;
}

export interface PlanOptions {
  /** Written to `metadata.managedBy` of each object. */
  name?: string | undefined;
  /** Whether to delete what has this name in `metadata.managedBy` and no document. `present` must have everything then. */
  prune?: boolean | undefined;
}

/** A field that changes, with its values for people; secrets and custom headers come without. */
export interface FieldChange {
  field: string;
  isSecret: boolean;
  before?: unknown;
  after?: unknown;
}

interface ChangeBase {
  kind: Kind;
  /** The id of an object without one. */
  uid: string;
}

export interface Creation extends ChangeBase {
  action: 'create';
  fields: readonly FieldChange[];
  /** Has secrets in clear: never print it. */
  body: Readonly<Record<string, unknown>>;
}

export interface Update extends ChangeBase {
  action: 'update';
  id: string;
  fields: readonly FieldChange[];
  /** Has secrets in clear: never print it. */
  body: Readonly<Record<string, unknown>>;
  /** The `secret` that a rotation sets before the update; null for none. */
  secret: string | null;
  /** Names of objects whose changes come before this one, which is not made after a failure of theirs. */
  after?: readonly string[];
}

export interface Deletion extends ChangeBase {
  action: 'delete';
  id: string;
}

/** What the API would refuse, such as another owner, or what would destroy more than it names. */
export interface Refusal extends ChangeBase {
  action: 'refuse';
  reason: string;
}

export type Change = Creation | Update | Deletion | Refusal;

export interface Plan {
  /** In the order in which they are made. */
  changes: readonly Change[];
  /** Count of documents. */
  unchanged: number;
  /** For people. */
  notes: readonly string[];
}

type Values = Readonly<Record<string, unknown>>;

interface Context {
  options: PlanOptions;
  present: Present;
  /** By kind and uid. */
  byName: ReadonlyMap<string, PresentObject>;
  documents: ReadonlySet<string>;
  notes: string[];
  /** Given secrets that the API does not show. */
  hidden: number;
}

const nameOf = (kind: Kind, uid: string): string => `${kind} ${uid}`;

export function planChanges(
  documents: readonly Document[],
  present: Present,
  options: PlanOptions = {},
): Plan {
  const named = present.objects.filter(({ uid }) => uid !== null);
  const context: Context = {
    options,
    present,
    byName: new Map(named.map((each) => [nameOf(each.kind, each.uid ?? ''), each])),
    documents: new Set(documents.map(({ kind, uid }) => nameOf(kind, uid))),
    notes: [],
    hidden: 0,
  };
  const ordered = KINDS.flatMap((kind) => documents.filter((each) => each.kind === kind));
  const changes = ordered.flatMap((document) => planDocument(document, context) ?? []);
  const unchanged = documents.length - changes.length;
  const { hidden, notes } = context;
  if (hidden > 0) {
    notes.push(`Secrets that were not compared: ${hidden}. This API key may not see stored ones`);
  }
  return {
    changes: [
      ...withLatePolicies(changes, context),
      ...(options.prune ? planDeletions(documents, context) : []),
    ],
    unchanged,
    notes,
  };
}

/** Returns null when the object is as the document has it. */
function planDocument(document: Document, context: Context): Change | null {
  const { kind, uid } = document;
  const present = context.byName.get(nameOf(kind, uid));
  const refuse = (reason: string): Refusal => ({ action: 'refuse', kind, uid, reason });
  const refusal = refusalOf(document, present, context);
  if (refusal !== null) return refuse(refusal);
  const given = withManager(document, present, context.options);
  try {
    return present
      ? planUpdate(document, given, present, context)
      : planCreation(document, given, context);
  } catch (error) {
    if (error instanceof NotPossible) return refuse(error.message);
    throw error;
  }
}

/**
 * Moves a stricter `eventTypePolicy` of a project behind the changes of its event types: before them, it would refuse the
 * messages of types that are on their way.
 */
function withLatePolicies(changes: readonly Change[], context: Context): Change[] {
  const ofTypes = changes.filter(({ kind }) => kind === 'EventType');
  const late: Update[] = [];
  const first = changes.flatMap((change): Change[] => {
    const types = ofTypes.filter((each) => isOfProject(each, change, context));
    const policy = policyOf(change);
    if (types.length === 0 || !policy) return [change];
    const { kind, uid } = change;
    const others = withoutPolicy(change as Creation | Update);
    const names = [...others, ...types].map((each) => nameOf(each.kind, each.uid));
    const id = `uid:${uid}`;
    const body = { eventTypePolicy: policy.after };
    late.push({
      action: 'update',
      kind,
      uid,
      id,
      fields: [policy],
      body,
      secret: null,
      after: names,
    });
    return others;
  });
  const isOwner = ({ kind }: Change): boolean => kind === 'Project' || kind === 'EventType';
  return [...first.filter(isOwner), ...late, ...first.filter((each) => !isOwner(each))];
}

const POLICY = 'eventTypePolicy';

/** Returns the change of a project's policy to a stricter one. */
function policyOf(change: Change): FieldChange | undefined {
  if (change.kind !== 'Project' || !('fields' in change)) return undefined;
  const { choices, default: initial } = PROJECT_RULES[POLICY];
  const strictness = (policy: unknown): number => choices.findIndex((each) => each === policy);
  return change.fields.find(
    ({ field, before = initial, after }) =>
      field === POLICY && strictness(after) > strictness(before),
  );
}

/** Nothing is left of an update of the policy alone. */
function withoutPolicy(change: Creation | Update): Change[] {
  const { [POLICY]: _policy, ...body } = change.body;
  const fields = change.fields.filter(({ field }) => field !== POLICY);
  return change.action === 'update' && fields.length === 0 ? [] : [{ ...change, fields, body }];
}

function isOfProject({ uid }: Change, project: Change, { present }: Context): boolean {
  const { project: reference } = eventTypeKeyOf(uid);
  const own = `uid:${project.uid}`;
  return reference === own || reference === present.idOf('Project', own);
}

/** Ends the planning of one document. */
class NotPossible extends Error {}

function refusalOf(
  { kind, fields }: Document,
  object: PresentObject | undefined,
  { options: { name }, present, documents }: Context,
): string | null {
  const given: Values = { ...fields };
  for (const [field, { owner, isFixed }] of Object.entries(FIELD_RULES[kind])) {
    const value = given[field];
    if (!isFixed || typeof value !== 'string') continue;
    const id = owner ? present.idOf(owner, value) : value;
    const isInDocuments = owner && documents.has(nameOf(owner, value.replace(/^uid:/, '')));
    if (id === null && !isInDocuments) return `${field}: nothing has ${value}`;
    const before = object?.fields[field];
    if (before !== undefined && before !== id) {
      return owner ? `it is not in ${value}, and cannot move` : `${field} cannot change`;
    }
  }
  const manager = managerOf(object?.fields);
  const wanted = managerOf(given);
  if (name === undefined) return null;
  if (wanted !== undefined && wanted !== name) return `metadata.managedBy is not ${name}`;
  return manager === undefined || manager === name ? null : `it is managed by ${manager}`;
}

function managerOf(fields: Values | undefined): string | undefined {
  return (fields?.metadata as Readonly<Record<string, string>> | null | undefined)?.managedBy;
}

/** The fields of a document. A name is added to the metadata that it has, or else to the present ones. */
function withManager(
  { kind, fields }: Document,
  present: PresentObject | undefined,
  { name }: PlanOptions,
): Values {
  // Event types have no metadata.
  if (name === undefined || !FIELD_RULES[kind].metadata) return { ...fields };
  const { metadata = present?.fields.metadata } = fields as Values;
  return { ...fields, metadata: { ...(metadata as object | null), managedBy: name } };
}

function planCreation({ kind, uid }: Document, given: Values, { notes }: Context): Creation {
  const rules = FIELD_RULES[kind];
  const found = Object.entries(given).filter(([, value]) => value !== null && value !== undefined);
  const missing = found.flatMap(([field, value]) =>
    value instanceof Secret && !value.isGiven ? [{ field, value }] : [],
  );
  for (const { field, value } of missing) {
    if (field !== 'secret' && field !== 'hmacSecret') throw notSet(field, value);
    const instead = field === 'secret' ? 'is generated' : 'is the secret of the webhook';
    notes.push(`${nameOf(kind, uid)}: ${field} ${instead}, because ${value.source} is not set`);
  }
  const fields = found.filter(([, value]) => !(value instanceof Secret) || value.isGiven);
  return {
    action: 'create',
    kind,
    uid,
    fields: fields.map(([field, value]) => shownChange(field, rules[field], { after: value })),
    body: Object.fromEntries(fields.map(([field, value]) => [field, sentValue(value, field, [])])),
  };
}

const notSet = (field: string, { source }: Secret): NotPossible =>
  new NotPossible(`${field}: ${source} is not set`);

/** Returns the value of a field in a request; that of a header without a secret is kept, as far as the webhook has it. */
function sentValue(value: unknown, field: string, headers: readonly HeaderFields[]): unknown {
  if (value instanceof Secret) return value.reveal();
  if (value === null) return null;
  if (field === 'tls') return sentTls(value as TlsFields);
  if (field !== 'customHeaders') return value;
  return (value as readonly HeaderFields[]).map((header) => {
    if (!(header.value instanceof Secret)) return header;
    const isKept = headerOf(headers, header.key) !== undefined;
    if (!header.value.isGiven && !isKept) throw notSet(`customHeaders ${header.key}`, header.value);
    return { key: header.key, value: header.value.reveal() ?? MASK };
  });
}

function sentTls({ key, ...certificates }: TlsFields): object {
  if (!key) return certificates;
  if (!key.isGiven) throw notSet('tls, which changes as a whole', key);
  return { ...certificates, key: key.reveal() };
}

function headerOf(headers: readonly HeaderFields[], name: string): HeaderFields | undefined {
  return headers.find(({ key }) => key.toLowerCase() === name.toLowerCase());
}

function planUpdate(
  { kind, uid }: Document,
  given: Values,
  { id, fields: before }: PresentObject,
  context: Context,
): Update | null {
  const rules = FIELD_RULES[kind];
  const changed = changedFields(kind, given, before, context);
  if (changed.length === 0) return null;
  const secret = changed.find(([field]) => field === 'secret')?.[1];
  const headers = (before.customHeaders ?? []) as readonly HeaderFields[];
  const sent = changed
    .filter(([field]) => field !== 'secret')
    .map(([field, value]) => [field, sentValue(value, field, headers)] as const);
  return {
    action: 'update',
    kind,
    uid,
    id,
    fields: changed.map(([field, value]) =>
      shownChange(field, rules[field], { before: before[field], after: value }),
    ),
    body: Object.fromEntries(sent),
    secret: secret instanceof Secret ? (secret.reveal() ?? null) : null,
  };
}

function changedFields(
  kind: Kind,
  given: Values,
  before: Values,
  context: Context,
): [field: string, value: unknown][] {
  const rules = FIELD_RULES[kind];
  const applicable = Object.entries(given).filter(([field, value]) =>
    isApplicable(field, value, rules[field], { given, before }),
  );
  const different = new Set(
    applicable.flatMap(([field, value]) =>
      isEqual(field, value, rules[field], { before, context }) ? [] : [field],
    ),
  );
  const isNewMethod = different.has('authMethod');
  return applicable.filter(([field, value]) => {
    const rule = rules[field];
    if (isNewMethod && rule?.authMethod) return isGivenToNewMethod(field, value, rule);
    // An `hmacSecret` that equals the secret follows a rotation, also away from what the document has.
    if (field === 'hmacSecret' && different.has('secret')) return isKnown(value);
    return different.has(field);
  });
}

/** False for what stays as it is in any case: what was given at creation, and null for what the webhook does not have. */
function isApplicable(
  field: string,
  value: unknown,
  rule: FieldRule | undefined,
  { given, before }: { given: Values; before: Values },
): boolean {
  // A rotation replaces a secret.
  if (value === undefined || (rule?.isFixed && rule.type !== 'secret')) return false;
  // Null for these means the same as at creation, where it is none: the present one stays.
  if (value === null && (rule?.isFixed ?? rule?.isKept)) return false;
  if (!rule?.authMethod) return true;
  const method = methodOf(given) ?? before.authMethod;
  if (value !== null && method !== undefined && rule.authMethod !== method) {
    throw new NotPossible(`${field} belongs to authMethod ${rule.authMethod}`);
  }
  if (value === null && rule.isRequired && rule.authMethod === method) {
    throw new NotPossible(`${field} must not be null`);
  }
  const { signatureAlgorithm: algorithm = before.signatureAlgorithm } = given;
  const isOfSecret = UNUSED_WITH_ED25519.some((each) => each === field);
  return rule.authMethod === method && !(value === null && isOfSecret && algorithm === 'ed25519');
}

/** Undefined when the document leaves it open. */
function methodOf({ authMethod }: Values): unknown {
  return authMethod === null ? WEBHOOK_RULES.authMethod.default : authMethod;
}

/** A new method is given with all of its fields. */
function isGivenToNewMethod(field: string, value: unknown, { isRequired }: FieldRule): boolean {
  if (value instanceof Secret && !value.isGiven && isRequired) throw notSet(field, value);
  return value !== null && isKnown(value);
}

const isKnown = (value: unknown): boolean => !(value instanceof Secret) || value.isGiven;

function isEqual(
  field: string,
  value: unknown,
  rule: FieldRule | undefined,
  { before, context }: { before: Values; context: Context },
): boolean {
  const stored = before[field];
  switch (rule?.type) {
    case 'secret':
      return isSameSecret(value, field === 'hmacSecret' ? before.secret : null, stored, context);
    case 'headers':
      return areSameHeaders((value ?? []) as HeaderFields[], stored, context);
    case 'object':
      return isDeepStrictEqual(fingerprintsOf(value as TlsFields | null), stored ?? null);
    case 'url':
      return encodedUrl(String(value)) === stored;
    case 'text':
    case 'time':
    case 'flag':
    case 'number':
    case 'numbers':
    case 'texts':
    case 'pairs':
    case 'json':
    case undefined:
      return isDeepStrictEqual(value ?? rule?.default, stored ?? rule?.default);
  }
}

/** `initially` is the value without one. */
function isSameSecret(
  value: unknown,
  initially: unknown,
  stored: unknown,
  context: Context,
): boolean {
  if (value instanceof Secret && !value.isGiven) return true;
  if (stored === MASK) {
    context.hidden += 1;
    return true;
  }
  return (value instanceof Secret ? value.reveal() : initially) === stored;
}

function areSameHeaders(
  headers: readonly HeaderFields[],
  stored: unknown,
  context: Context,
): boolean {
  const before = (stored ?? []) as readonly { key: string; value: string }[];
  return (
    headers.length === before.length &&
    headers.every(({ key, value }, index) => {
      const same = before[index];
      if (same?.key !== key) return false;
      return isSameSecret(
        value instanceof Secret ? value : new Secret('the document', value),
        null,
        same.value,
        context,
      );
    })
  );
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

function fingerprintsOf(tls: TlsFields | null): PresentTls | null {
  if (tls === null) return null;
  return { certificate: fingerprints(tls.certificate), ca: fingerprints(tls.ca) };
}

function fingerprints(pem = ''): string[] {
  const blocks = pem.match(CERTIFICATE) ?? [];
  if (pem !== '' && blocks.length === 0) throw new NotPossible('tls has no certificate in PEM');
  try {
    return blocks.map((block) => new X509Certificate(block).fingerprint256);
  } catch {
    throw new NotPossible('tls has a certificate that cannot be read');
  }
}

/** The characters that a path or query may not have (RFC 3986, 3.3 and 3.4), and a `%` that encodes nothing. */
const NOT_ALLOWED = /[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]|%(?![0-9A-Fa-f]{2})/g;

/** Returns a URL as the API stores and shows it (docs/contract.md C6.3). */
function encodedUrl(text: string): string {
  if (!URL.canParse(text)) return text;
  const url = new URL(text);
  const encode = (char: string): string =>
    `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
  return url.origin + (url.pathname + url.search).replace(NOT_ALLOWED, encode);
}

/** Header values, and those in the query of a URL, may be credentials whatever their names are. */
function shownChange(
  field: string,
  rule: FieldRule | undefined,
  values: { before?: unknown; after: unknown },
): FieldChange {
  const isSecret = rule?.type === 'secret' || rule?.type === 'headers' || rule?.type === 'object';
  if (isSecret) return { field, isSecret };
  const shown = Object.entries(values).map(([name, value]) => [
    name,
    rule?.type === 'url' ? withoutQueryValues(value) : (value ?? rule?.default ?? null),
  ]);
  return { field, isSecret, ...Object.fromEntries(shown) } as FieldChange;
}

function withoutQueryValues(url: unknown): unknown {
  return typeof url === 'string' ? url.replaceAll(/=[^&]*(?=&|$)/g, '=…') : null;
}

/** Webhooks before apps, and apps before projects. */
function planDeletions(documents: readonly Document[], context: Context): Change[] {
  const { options, present } = context;
  const isLeftOver = ({ kind, uid, fields }: PresentObject): boolean =>
    options.name !== undefined &&
    managerOf(fields) === options.name &&
    (uid === null || !context.documents.has(nameOf(kind, uid)));
  const deleted = new Set<string>();
  const owned = ownedByDocuments(documents, present);
  return KINDS.toReversed().flatMap((kind) =>
    present.objects
      .filter((each) => each.kind === kind && isLeftOver(each))
      .map((object): Change => {
        const { id, uid } = object;
        const inside = present.objects.filter(
          (each) => ownersOf(each).includes(id) && !deleted.has(each.id),
        ).length;
        const common = { kind, uid: uid ?? id };
        if (inside > 0 || owned.has(id)) {
          const reason = 'it is not deleted, because something in it stays';
          return { action: 'refuse', ...common, reason };
        }
        deleted.add(id);
        return { action: 'delete', ...common, id };
      }),
  );
}

function ownersOf({ kind, fields }: PresentObject): unknown[] {
  const rules = Object.entries(FIELD_RULES[kind]);
  return rules.flatMap(([field, { owner }]) => (owner ? [fields[field]] : []));
}

/** Ids of what documents name as owner: a deletion would take what is created there. */
function ownedByDocuments(documents: readonly Document[], present: Present): Set<string | null> {
  const owners = documents.flatMap(({ kind, fields }) =>
    Object.entries(FIELD_RULES[kind]).flatMap(([field, { owner }]) => {
      const reference = (fields as Values)[field];
      return owner && typeof reference === 'string' ? [present.idOf(owner, reference)] : [];
    }),
  );
  return new Set(owners);
}
