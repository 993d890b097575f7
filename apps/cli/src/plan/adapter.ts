import {
  type App,
  type AuthMethod,
  AuthenticationError,
  ConnectionError,
  type EventType,
  type FoundWebhook,
  NotFoundError,
  type Posthorn,
  type Project,
  TimeoutError,
  type WebhookWithAuth,
} from '@posthorn/client';
import { CommandFailure } from '../failures.ts';
import { type Document, eventTypeKeyOf, FIELD_RULES, type Kind, Secret } from './documents.ts';
import type {
  Change,
  Creation,
  Plan,
  PlanOptions,
  Present,
  PresentObject,
  PresentTls,
  Update,
} from './plan.ts';

/* Reads the objects that plan.ts compares with documents, and makes the changes that it has decided. */

/** Requests under way. */
const AT_ONCE = 8;
/** 429 is waited for as long as the API asks; other failures for 15 s at all. */
const OPTIONS = { maxRetries: 5 };
/** That one request takes. */
const MAX_IDS = 100;

/** An object as lists have it, with its owner, which it does not show by itself. */
interface Listed extends PresentObject {
  /** Whether it has all fields. */
  isWhole: boolean;
}

type Uids = Readonly<Record<Kind, ReadonlySet<string>>>;

/** Reads what the documents are about, and for `prune` everything. */
export async function readPresent(
  api: Posthorn,
  documents: readonly Document[],
  { prune = false }: PlanOptions = {},
): Promise<Present> {
  const listed = [
    ...(prune ? await listEverything(api) : await findNamed(api, uidsOf(documents))),
    ...(await findEventTypes(api, documents)),
  ];
  const byName = new Map(documents.map((each) => [`${each.kind} ${each.uid}`, each]));
  const objects = await inParallel(listed, async (each) => {
    const document = byName.get(`${each.kind} ${each.uid ?? ''}`);
    if (!document || each.isWhole) return [each];
    return toList(await readWhole(api, each, needsSecrets(document)));
  });
  return presentOf(objects.flat());
}

/** What an export is about: ids, or `uid:` and uids. Everything without both. */
export interface Scope {
  /** The project, its apps, and all webhooks of it. */
  project?: string | undefined;
  /** The app and its webhooks. */
  app?: string | undefined;
}

/**
 * Reads everything in the scope but the temporary webhooks of `listen`, without secrets. Throws when there is no such project
 * or app. `others` are projects and apps beyond the scope, which may own what is in it.
 */
export async function readEverything(
  api: Posthorn,
  { project, app }: Scope = {},
): Promise<Present & { others: readonly PresentObject[] }> {
  const projectId = project && (await api.projects.get(project, OPTIONS)).id;
  const appId = app && (await api.apps.get(app, OPTIONS)).id;
  const owners = await listEverything(api);
  const listed = appId ? owners : [...owners, ...(await listEventTypes(api, owners, projectId))];
  const apps = listed.filter(({ kind, id, fields }) => {
    return kind === 'App' && (appId ? id === appId : !projectId || fields.projectId === projectId);
  });
  const appIds = new Set(apps.map(({ id }) => id));
  const isWanted = ({ kind, id, fields }: Listed): boolean => {
    if (kind === 'App') return appIds.has(id);
    if (kind === 'Webhook' && typeof fields.appId === 'string') return appIds.has(fields.appId);
    const owner = kind === 'Project' ? id : fields.projectId;
    return !appId && (!projectId || owner === projectId);
  };
  const objects = await inParallel(listed.filter(isWanted), async (each) =>
    each.isWhole ? [each] : toList(await readWhole(api, each, false)),
  );
  return {
    ...presentOf(objects.flat().filter((each) => !isOfListen(each))),
    others: listed.filter((each) => each.isWhole && !isWanted(each)),
  };
}

/** A webhook of a `listen` that runs: applying its document later would create one that leads nowhere. */
function isOfListen({ kind, fields }: PresentObject): boolean {
  const { posthornListen } = (fields.metadata ?? {}) as Readonly<Record<string, string>>;
  return kind === 'Webhook' && posthornListen === 'true';
}

const toList = <T>(value: T | null): T[] => (value === null ? [] : [value]);

function presentOf(objects: readonly PresentObject[]): Present {
  const ids = new Map(objects.map(({ kind, uid, id }) => [`${kind} uid:${uid ?? ''}`, id]));
  return {
    objects,
    idOf: (kind, reference) =>
      reference.startsWith('uid:') ? (ids.get(`${kind} ${reference}`) ?? null) : reference,
  };
}

/** Of the documents, and of what they refer to. */
function uidsOf(documents: readonly Document[]): Uids {
  const uids = {
    Project: new Set<string>(),
    EventType: new Set<string>(),
    App: new Set<string>(),
    Webhook: new Set<string>(),
  };
  for (const { kind, uid, fields } of documents) {
    uids[kind].add(uid);
    for (const [field, { owner }] of Object.entries(FIELD_RULES[kind])) {
      const reference = (fields as Readonly<Record<string, unknown>>)[field];
      const isUid = typeof reference === 'string' && reference.startsWith('uid:');
      if (owner && isUid) uids[owner].add(reference.slice('uid:'.length));
    }
  }
  return uids;
}

/** Custom headers are masked too, as their names suggest. */
function needsSecrets({ fields }: Document): boolean {
  const { customHeaders } = fields as { customHeaders?: readonly { value: unknown }[] | null };
  const values: unknown[] = [
    ...Object.values<unknown>(fields),
    ...(customHeaders ?? []).map(({ value }) => value),
  ];
  const isLiteral = customHeaders?.some(({ value }) => typeof value === 'string') === true;
  return isLiteral || values.some((value) => value instanceof Secret && value.isGiven);
}

async function findNamed(api: Posthorn, uids: Uids): Promise<Listed[]> {
  const projects = await inParallel([...uids.Project], (uid) =>
    nullIfMissing(api.projects.get(`uid:${uid}`, OPTIONS)),
  );
  const apps = await inParallel(listsOfIds(uids.App), (ids) =>
    collect(api.apps.find({ ids, limit: MAX_IDS }, OPTIONS)),
  );
  const webhooks = await inParallel(listsOfIds(uids.Webhook), (ids) =>
    collect(api.webhooks.find({ ids, limit: MAX_IDS }, OPTIONS)),
  );
  return [
    ...projects.flatMap((each) => (each ? [listedProject(each)] : [])),
    ...apps.flat().map(({ id, uid, projectId }): Listed => {
      return { kind: 'App', id, uid, fields: { projectId }, isWhole: false };
    }),
    ...webhooks.flat().map((each) => listedWebhook(each, {})),
  ];
}

/** Named as their documents name them. Their project is known to the API. */
async function findEventTypes(api: Posthorn, documents: readonly Document[]): Promise<Listed[]> {
  const named = documents.filter(({ kind }) => kind === 'EventType');
  const found = await inParallel(named, async ({ uid }) => {
    const { project, name } = eventTypeKeyOf(uid);
    const eventType = await nullIfMissing(api.eventTypes.get(project, name, {}, OPTIONS));
    return eventType && listedEventType(uid, fieldsOf('EventType', eventType));
  });
  return found.flatMap(toList);
}

/** Those of all projects, or of one. */
async function listEventTypes(
  api: Posthorn,
  listed: readonly Listed[],
  projectId: string | undefined,
): Promise<Listed[]> {
  const projects = listed.filter(
    ({ kind, id }) => kind === 'Project' && (projectId === undefined || id === projectId),
  );
  const eventTypes = await inParallel(projects, async ({ id }) => {
    const found = await collect(api.eventTypes.list(id, {}, OPTIONS));
    return found.map(({ name }) => ({
      ...listedEventType(`${id}/${name}`, { projectId: id }),
      isWhole: false,
    }));
  });
  return eventTypes.flat();
}

function listedEventType(uid: string, fields: Fields): Listed {
  return { kind: 'EventType', id: uid, uid, fields, isWhole: true };
}

function listsOfIds(uids: ReadonlySet<string>): string[][] {
  const ids = [...uids].map((uid) => `uid:${uid}`);
  const count = Math.ceil(ids.length / MAX_IDS);
  return Array.from({ length: count }, (_, n) => ids.slice(n * MAX_IDS, (n + 1) * MAX_IDS));
}

async function listEverything(api: Posthorn): Promise<Listed[]> {
  const projects = await collect(api.projects.list({}, OPTIONS));
  const apps = await inParallel(projects, async ({ id: projectId }) => {
    const found = await collect(api.apps.list({ projectId }, OPTIONS));
    return found.map((app): Listed => {
      const { id, uid } = app;
      const fields = { projectId, ...fieldsOf('App', app) };
      return { kind: 'App', id, uid, fields, isWhole: true };
    });
  });
  const owned = await collect(api.webhooks.find({ limit: MAX_IDS }, OPTIONS));
  const shown = await collect(api.webhooks.list({ secrets: false }, OPTIONS));
  const byId = new Map(shown.map((each) => [each.id, each]));
  return [
    ...projects.map(listedProject),
    ...apps.flat(),
    // The oldest first, as the others are.
    ...owned.toReversed().map((each) => {
      const { metadata } = byId.get(each.id) ?? {};
      return listedWebhook(each, { metadata });
    }),
  ];
}

function listedProject(project: Project): Listed {
  const { id, uid } = project;
  return { kind: 'Project', id, uid, fields: fieldsOf('Project', project), isWhole: true };
}

function listedWebhook(found: FoundWebhook, others: Fields): Listed {
  const { id, uid, appId, projectId, environmentId } = found;
  const fields = { appId, projectId, environmentId, ...others };
  return { kind: 'Webhook', id, uid, fields, isWhole: false };
}

/** Returns null for what was deleted meanwhile. */
async function readWhole(
  api: Posthorn,
  { kind, id, uid, fields: owner }: Listed,
  withSecrets: boolean,
): Promise<PresentObject | null> {
  const read = (): PromiseLike<Fields> => {
    switch (kind) {
      case 'Project':
        return api.projects.get(id, OPTIONS).then((project) => fieldsOf(kind, project));
      case 'App':
        return api.apps.get(id, OPTIONS).then((app) => fieldsOf(kind, app));
      case 'EventType': {
        const { project, name } = eventTypeKeyOf(id);
        const whole = api.eventTypes.get(project, name, {}, OPTIONS);
        return whole.then((eventType) => fieldsOf(kind, eventType));
      }
      case 'Webhook':
        return api.webhooks.get(id, { secrets: withSecrets }, OPTIONS).then(fieldsOfWebhook);
    }
  };
  const fields = await nullIfMissing(read());
  return fields && { kind, id, uid, fields: { ...owner, ...fields } };
}

type Fields = PresentObject['fields'];

/** Returns the fields of a document, with the default of each that responses leave out. */
function fieldsOf(kind: Kind, shown: Project | App | EventType): Fields {
  const values: Fields = { ...shown };
  const fields = Object.entries(FIELD_RULES[kind]).map(([field, rule]): [string, unknown] => [
    field,
    values[field] ?? (rule.isFixed ? undefined : rule.default),
  ]);
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}

function fieldsOfWebhook({ authMethod, tls, ...shown }: WebhookWithAuth): Fields {
  const same = Object.entries(shown).filter(([field]) => Object.hasOwn(FIELD_RULES.Webhook, field));
  const digests = (list: readonly { fingerprint256: string }[]): string[] =>
    list.map(({ fingerprint256 }) => fingerprint256);
  const present: PresentTls | null = tls
    ? { certificate: digests(tls.certificate), ca: digests(tls.ca) }
    : null;
  return { ...Object.fromEntries(same), ...fieldsOfAuth(authMethod), tls: present };
}

function fieldsOfAuth({ method, ...shown }: AuthMethod): Fields {
  const authMethod = method === 'api_key' ? 'apiKey' : method;
  const values = shown as Fields;
  const rules = Object.entries(FIELD_RULES.Webhook).filter(
    ([, rule]) => rule.authMethod === authMethod,
  );
  const fields = rules.map(([field, rule]): [string, unknown] => [
    field,
    values[rule.shownAs ?? field] ?? rule.default,
  ]);
  return { authMethod, ...Object.fromEntries(fields) };
}

/** What became of a change. */
export interface Outcome {
  change: Change;
  /** Null when it was made. */
  error: unknown;
}

export interface ApplyOptions {
  /** Called after each change. */
  onOutcome?: (outcome: Outcome) => void;
}

/**
 * Makes the changes, some at once, owners before what they own. A failure of one does not stop the others, unless the API
 * cannot be reached or does not accept the key: then it throws. Repeated after an interruption, nothing is made twice:
 * creations are upserts, and the rest has the values that it sets.
 */
export async function applyPlan(
  api: Posthorn,
  { changes }: Plan,
  { onOutcome }: ApplyOptions = {},
): Promise<Outcome[]> {
  const failed = new Map<string, Change['action']>();
  const make = async (change: Change): Promise<Outcome> => {
    const error = await errorOf(api, change, failed);
    if (error !== null) failed.set(`${change.kind} ${change.uid}`, change.action);
    const outcome = { change, error };
    onOutcome?.(outcome);
    return outcome;
  };
  const outcomes: Outcome[] = [];
  for (const group of groupsOf(changes)) outcomes.push(...(await inParallel(group, make)));
  return outcomes;
}

/** Returns the changes that may be made at once: those of one kind in a row, and deletions by themselves. */
function groupsOf(changes: readonly Change[]): Change[][] {
  const groups: Change[][] = [];
  for (const change of changes) {
    const last = groups.at(-1);
    const before = last?.[0];
    const isSame =
      before?.kind === change.kind && (before.action === 'delete') === (change.action === 'delete');
    if (last && isSame) last.push(change);
    else groups.push([change]);
  }
  return groups;
}

/** The changes that failed, by the names of their objects. */
type Failed = ReadonlyMap<string, Change['action']>;

async function errorOf(api: Posthorn, change: Change, failed: Failed): Promise<unknown> {
  try {
    await makeChange(api, change, failed);
    return null;
  } catch (error) {
    if (isForAll(error)) throw error;
    return error;
  }
}

function isForAll(error: unknown): boolean {
  return [ConnectionError, TimeoutError, AuthenticationError].some((type) => error instanceof type);
}

async function makeChange(api: Posthorn, change: Change, failed: Failed): Promise<void> {
  switch (change.action) {
    case 'create': {
      const owner = failedOwnerOf(change, failed);
      if (owner !== null) throw new CommandFailure(`not tried, because ${owner} was not created`);
      const { kind, uid, body } = change;
      await put(api, kind, kind === 'EventType' ? uid : `uid:${uid}`, body, true);
      return;
    }
    case 'update': {
      const before = change.after?.find((name) => failed.has(name));
      if (before !== undefined) throw new CommandFailure(`not tried, because ${before} failed`);
      await update(api, change);
      return;
    }
    case 'delete':
      await nullIfMissing(deletionOf(api, change.kind, change.id));
      return;
    case 'refuse':
      throw new CommandFailure(change.reason);
  }
}

function failedOwnerOf({ kind, body }: Creation, failed: Failed): string | null {
  const owners = Object.entries(FIELD_RULES[kind]).flatMap(([field, { owner }]) => {
    const reference = body[field];
    return owner && typeof reference === 'string'
      ? [`${owner} ${reference.replace(/^uid:/, '')}`]
      : [];
  });
  // One that was not changed is there.
  return owners.find((name) => (failed.get(name) ?? 'update') !== 'update') ?? null;
}

/** The rotation comes first: it may change an `hmacSecret` that the update then sets. */
async function update(api: Posthorn, { kind, id, body, secret }: Update): Promise<void> {
  if (secret !== null) await api.webhooks.rotateSecret(id, { secret }, OPTIONS);
  if (Object.keys(body).length > 0) await put(api, kind, id, body, false);
}

/** The plan has made the body of the fields of this kind. */
function put(
  api: Posthorn,
  kind: Kind,
  id: string,
  body: Readonly<Record<string, unknown>>,
  upsert: boolean,
): PromiseLike<unknown> {
  const options = upsert ? { ...OPTIONS, upsert } : OPTIONS;
  switch (kind) {
    case 'Project':
      return api.projects.update(id, body, options);
    case 'EventType': {
      const { project, name } = eventTypeKeyOf(id);
      const { projectId: _project, ...fields } = body;
      return api.eventTypes.update(project, name, fields, options);
    }
    case 'App':
      return api.apps.update(id, body, options);
    case 'Webhook':
      return api.webhooks.update(id, body, options);
  }
}

function deletionOf(api: Posthorn, kind: Kind, id: string): PromiseLike<unknown> {
  switch (kind) {
    case 'Project':
      return api.projects.delete(id, OPTIONS);
    case 'EventType': {
      const { project, name } = eventTypeKeyOf(id);
      return api.eventTypes.delete(project, name, OPTIONS);
    }
    case 'App':
      return api.apps.delete(id, OPTIONS);
    case 'Webhook':
      return api.webhooks.delete(id, OPTIONS);
  }
}

/** Makes the id of each object without a uid its uid: it has the right characters, and nothing else has it. */
export async function assignUids(api: Posthorn, { objects }: Present): Promise<Present> {
  const named = await inParallel(objects, async (each) => {
    if (each.uid !== null) return each;
    await put(api, each.kind, each.id, { uid: each.id }, false);
    return { ...each, uid: each.id };
  });
  return presentOf(named);
}

async function nullIfMissing<T>(result: PromiseLike<T>): Promise<T | null> {
  try {
    return await result;
  } catch (error) {
    if (error instanceof NotFoundError) return null;
    throw error;
  }
}

/** `Array.fromAsync`, which Node 20 does not have. */
async function collect<T>(list: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of list) items.push(item);
  return items;
}

/** Returns the results in order. Begins nothing more after a failure, which it throws. */
async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  let hasFailed = false;
  const workOff = async (): Promise<void> => {
    while (next < items.length && !hasFailed) {
      const index = next;
      next += 1;
      try {
        results[index] = await work(items[index] as T);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, workOff));
  return results;
}
