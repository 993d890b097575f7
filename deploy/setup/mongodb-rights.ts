import { dayName, dayNumberOf } from '@posthorn/domain/ids.ts';
import type { CollectionName } from '@posthorn/platform/mongo/collections.ts';
import { DAY_KINDS, dayDatabaseName, type DayKind } from '@posthorn/platform/mongo/days/days.ts';

/** The processes that have a MongoDB user of their own. `setup` is create-indexes. */
export const DATABASE_USERS = ['gateway', 'dispatcher', 'retry', 'admin', 'setup'] as const;
export type DatabaseUser = (typeof DATABASE_USERS)[number];

/** Built-in privilege actions of MongoDB. */
type Action =
  | 'find'
  | 'changeStream'
  | 'insert'
  | 'update'
  | 'remove'
  | 'listIndexes'
  | 'createCollection'
  | 'enableSharding'
  | 'createIndex'
  | 'dropCollection';

export interface Privilege {
  resource: { db: string; collection: string };
  actions: string[];
}

/**
 * A process follows the changes of what it caches in one stream of the database, which needs the right to
 * read all of it (docs/decisions/0003-caches.md). Messages and deliveries have databases of their own.
 */
const FOLLOWERS: readonly DatabaseUser[] = ['gateway', 'dispatcher'];
const FOLLOW: readonly Action[] = ['find', 'changeStream'];
const ALL: readonly Action[] = ['find', 'insert', 'update', 'remove'];
const ALL_AND_INDEXES: readonly Action[] = [...ALL, 'listIndexes'];
const READ: readonly Action[] = ['find'];
const READ_AND_UPDATE: readonly Action[] = ['find', 'update'];
const READ_AND_REMOVE: readonly Action[] = ['find', 'remove'];
const CHANGE_AND_REMOVE: readonly Action[] = ['find', 'update', 'remove'];
/** An upsert needs both. */
const WRITE: readonly Action[] = ['find', 'insert', 'update'];

/** `idempotencyKeys` has the keys of creations; those of messages have a collection for each day. */
type UndividedName = Exclude<CollectionName, 'messages' | 'deliveries'>;
type Rights = Partial<Record<DatabaseUser, readonly Action[]>>;

/**
 * The rights of each process on each collection; it has no others (docs/security.md). The retry service removes
 * what is under a deleted webhook, app, project or company.
 */
export const RIGHTS: Record<UndividedName, Rights> = {
  companies: { gateway: READ, dispatcher: READ, retry: READ_AND_REMOVE, admin: WRITE },
  // The gateway sees whether the unique indexes are ready.
  apiKeys: {
    gateway: ALL_AND_INDEXES,
    retry: READ_AND_REMOVE,
    admin: ['find', 'insert', 'remove'],
  },
  // The admin command exports the data of a company.
  projects: { gateway: ALL, retry: READ_AND_REMOVE, admin: READ },
  eventTypes: { gateway: ALL, retry: READ_AND_REMOVE, admin: READ },
  eventTypeVersions: { gateway: ALL, retry: READ_AND_REMOVE, admin: READ },
  // The hold of an app is that of its webhooks, and the retry service ends it when its time is over.
  apps: { gateway: ALL, dispatcher: READ, retry: CHANGE_AND_REMOVE, admin: READ },
  webhooks: { gateway: ALL, dispatcher: READ, retry: CHANGE_AND_REMOVE, admin: READ_AND_UPDATE },
  signingKeys: {
    gateway: ALL_AND_INDEXES,
    dispatcher: READ,
    retry: READ_AND_REMOVE,
    admin: READ_AND_UPDATE,
  },
  idempotencyKeys: { gateway: ALL, retry: READ_AND_REMOVE },
  publishers: { gateway: ALL, retry: READ_AND_UPDATE },
  // How far the sweep has recorded every delivery bounds a plan.
  messageChecks: { gateway: READ, retry: WRITE },
  erasures: { dispatcher: WRITE, retry: ALL },
  requestedErasures: { gateway: WRITE, dispatcher: READ, retry: ['find', 'remove'] },
  leases: { retry: ALL, setup: ALL },
  migrations: { gateway: READ, setup: WRITE },
  layout: { gateway: READ, dispatcher: READ, retry: READ, admin: READ, setup: WRITE },
  // Notes of work: the gateway writes them, the retry service claims them. The admin command suspends companies.
  resends: { gateway: ALL_AND_INDEXES, retry: ALL, admin: READ },
  filterCancellations: {
    gateway: ['find', 'insert'],
    dispatcher: READ,
    retry: CHANGE_AND_REMOVE,
    admin: READ,
  },
  removals: { gateway: ['find', 'insert'], retry: CHANGE_AND_REMOVE },
  holdNotes: { gateway: WRITE, retry: ALL, admin: WRITE },
  // The dispatcher stores the sequences of ordering keys; the gateway makes one due, and skips its head.
  sequences: { gateway: READ_AND_UPDATE, dispatcher: ALL, retry: CHANGE_AND_REMOVE },
  portalSettings: { gateway: WRITE, retry: READ_AND_REMOVE, admin: READ },
  // People sign in through the gateway. The admin command writes the groups of a company, and exports both.
  people: { gateway: ALL_AND_INDEXES, retry: READ_AND_REMOVE, admin: READ },
  peopleSettings: { gateway: WRITE, retry: READ_AND_REMOVE, admin: WRITE },
  links: { gateway: WRITE, retry: READ_AND_REMOVE, admin: ['insert'] },
  // Some are removed with their company only. The retry service disables webhooks.
  auditEvents: { gateway: WRITE, retry: ALL, admin: WRITE },
  // The gateway removes those of a deleted webhook, app or project itself.
  stats: { gateway: READ_AND_REMOVE, retry: ALL, admin: READ },
  usage: { gateway: READ, retry: ALL, admin: READ },
  // The dispatcher counts attempts, the gateway messages; the retry service adds them up.
  countJournal: { gateway: ['insert'], dispatcher: ['insert'], retry: ['find', 'remove'] },
  countSteps: { retry: WRITE },
};

/**
 * The retry service makes and drops the collections of days; create-indexes makes the first ones. Both see whether one
 * is empty.
 */
const MAKE_DAYS: readonly Action[] = [
  'find',
  'createCollection',
  'createIndex',
  'listIndexes',
  'enableSharding',
];
const KEEP_DAYS: readonly Action[] = [...MAKE_DAYS, 'dropCollection'];

/**
 * The same for every collection of a day. Each kind has a database of its own, for which alone they can be given. The
 * retry service removes those of a removed company; it and the dispatcher erase payloads.
 */
export const DAY_RIGHTS: Record<DayKind, Rights> = {
  messages: {
    gateway: WRITE,
    dispatcher: READ_AND_UPDATE,
    retry: [...new Set([...CHANGE_AND_REMOVE, ...KEEP_DAYS])],
    admin: READ,
    setup: MAKE_DAYS,
  },
  deliveries: {
    // It stores those as cancelled that had no attempt before their webhook was deleted.
    gateway: WRITE,
    dispatcher: WRITE,
    retry: [...new Set([...ALL, ...KEEP_DAYS])],
    admin: READ_AND_UPDATE,
    setup: MAKE_DAYS,
  },
  idempotencyKeys: {
    gateway: ALL,
    retry: [...new Set([...READ_AND_REMOVE, ...KEEP_DAYS])],
    setup: MAKE_DAYS,
  },
};

const SETUP_ACTIONS = ['createCollection', 'createIndex', 'dropIndex', 'collMod', 'listIndexes'];

/** Returns the privileges of the role of a process. `database` may be '' for all databases of a test server. */
export function privilegesOf(user: DatabaseUser, database: string): Privilege[] {
  const names = Object.keys(RIGHTS) as UndividedName[];
  const on = (collection: string, actions: readonly string[]): Privilege => ({
    resource: { db: database, collection },
    actions: [...actions],
  });
  const ofDays = dayPrivilegesOf(user, database);
  if (user === 'setup') {
    const own = (name: UndividedName) => [...SETUP_ACTIONS, ...(RIGHTS[name].setup ?? [])];
    return [on('', ['listCollections']), ...names.map((name) => on(name, own(name))), ...ofDays];
  }
  const own = names.flatMap((name) => {
    const actions = RIGHTS[name][user];
    return actions ? [on(name, actions)] : [];
  });
  const following = FOLLOWERS.includes(user) ? [on('', FOLLOW)] : [];
  return [...following, ...own, ...ofDays];
}

/** Resources of MongoDB are a collection or a database: a day of tomorrow can only be named with all others. */
function dayPrivilegesOf(user: DatabaseUser, database: string): Privilege[] {
  return DAY_KINDS.flatMap((kind) => {
    const actions = [...(DAY_RIGHTS[kind][user] ?? [])];
    if (actions.length === 0) return [];
    const db = database && dayDatabaseName(database, kind);
    const isMaker = actions.includes('createCollection');
    const list = isMaker
      ? [{ resource: { db, collection: '' }, actions: ['listCollections'] }]
      : [];
    const names = database ? [''] : testedDays();
    return [...list, ...names.map((collection) => ({ resource: { db, collection }, actions }))];
  });
}

/** On a test server, where the privileges are for all databases, the collections of days must be named. */
function testedDays(): string[] {
  const today = dayNumberOf(Date.now());
  // The removal of a company reads the keys of four days ago.
  return [-4, -3, -2, -1, 0, 1, 2, 3, 4, 5].map((ahead) => dayName(today + ahead));
}

export const databaseRoleOf = (user: DatabaseUser): string => `posthorn-${user}`;

/** Users of an existing role keep it. */
const SET_ROLE = `const admin = db.getSiblingDB('admin');
const setRole = ({ role, ...rights }) =>
  admin.getRole(role) ? admin.updateRole(role, rights) : admin.createRole({ role, ...rights });
`;

/** Returns a program for mongosh, run as an administrator, that creates a role for each process, or brings it up to date. */
export function rolesScript(database: string): string {
  const roles = DATABASE_USERS.map((user) => {
    const privileges = privilegesOf(user, database);
    return `setRole(${JSON.stringify({ role: databaseRoleOf(user), privileges, roles: [] })});\n`;
  });
  return SET_ROLE + roles.join('');
}
