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
/** An upsert needs both. */
const WRITE: readonly Action[] = ['find', 'insert', 'update'];

/** `idempotencyKeys` has the keys of creations; those of messages have a collection for each day. */
type UndividedName = Exclude<CollectionName, 'messages' | 'deliveries'>;
type Rights = Partial<Record<DatabaseUser, readonly Action[]>>;

/** What each process does with each collection; what is not here it cannot do (docs/security.md). */
export const RIGHTS: Record<UndividedName, Rights> = {
  companies: {
    gateway: ['find', 'remove'],
    dispatcher: READ,
    retry: READ,
    admin: WRITE,
  },
  // The gateway sees whether the unique indexes are ready.
  apiKeys: { gateway: ALL_AND_INDEXES, admin: ['find', 'insert', 'remove'] },
  // The admin command exports the data of a company.
  projects: { gateway: ALL, admin: READ },
  // The hold of an app is that of its webhooks.
  apps: { gateway: ALL, dispatcher: READ, retry: READ, admin: READ },
  webhooks: { gateway: ALL, dispatcher: READ, retry: READ_AND_UPDATE, admin: READ_AND_UPDATE },
  signingKeys: { gateway: ALL_AND_INDEXES, dispatcher: READ, admin: READ_AND_UPDATE },
  idempotencyKeys: { gateway: ALL },
  publishers: { gateway: ALL, retry: READ_AND_UPDATE },
  messageChecks: { retry: WRITE },
  erasures: { dispatcher: WRITE, retry: ALL },
  requestedErasures: { gateway: WRITE, dispatcher: READ, retry: ['find', 'remove'] },
  leases: { gateway: ALL, retry: ALL, setup: ALL },
  migrations: { gateway: READ, setup: WRITE },
  layout: { gateway: READ, dispatcher: READ, retry: READ, admin: READ, setup: WRITE },
  resends: { gateway: ALL_AND_INDEXES, admin: READ },
  removals: { gateway: ['find', 'insert', 'remove'] },
  // The retry service finds deliveries that nothing releases, the admin command suspends companies.
  holdNotes: { gateway: ALL, retry: WRITE, admin: WRITE },
  portalSettings: { gateway: ALL, admin: READ },
  links: { gateway: ALL, admin: ['insert'] },
  // Only the gateway removes any, with their company. The retry service disables webhooks.
  auditEvents: { gateway: ALL, retry: WRITE, admin: WRITE },
  // The gateway removes both with their webhook, app or company. Gateways and dispatchers of the version before count in
  // them themselves.
  stats: { gateway: ['find', 'remove'], dispatcher: WRITE, retry: WRITE, admin: READ },
  usage: { gateway: ALL, dispatcher: WRITE, retry: WRITE, admin: READ },
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
 * gateway removes those of a removed company; the dispatcher and the retry service erase payloads.
 */
export const DAY_RIGHTS: Record<DayKind, Rights> = {
  messages: {
    gateway: ALL,
    dispatcher: READ_AND_UPDATE,
    retry: [...new Set([...READ_AND_UPDATE, ...KEEP_DAYS])],
    admin: READ,
    setup: MAKE_DAYS,
  },
  deliveries: {
    // It stores those as cancelled that had no attempt before their webhook was deleted.
    gateway: ALL,
    dispatcher: WRITE,
    retry: [...new Set([...WRITE, ...KEEP_DAYS])],
    admin: READ_AND_UPDATE,
    setup: MAKE_DAYS,
  },
  idempotencyKeys: { gateway: ALL, retry: KEEP_DAYS, setup: MAKE_DAYS },
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
  return [-2, -1, 0, 1, 2, 3, 4, 5].map((ahead) => dayName(today + ahead));
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
