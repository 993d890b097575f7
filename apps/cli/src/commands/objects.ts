import { type Command, Option } from '@commander-js/extra-typings';
import type { App, BeginHold, EndHold, FoundApp, List, Posthorn, Project } from '@posthorn/client';
import { APP_RULES, HOLD_RULES, PROJECT_RULES } from '@posthorn/client/rules';
import { UsageFailure } from '../failures.ts';
import {
  addFields,
  addNull,
  type Field,
  type FieldOption,
  fieldsWith,
  type Options,
  parseCount,
  readBody,
  requireChange,
  requireFields,
  type WithOptions,
} from '../options.ts';
import type { Columns } from '../output.ts';
import type { Session } from '../session.ts';

/* The five usual commands of an object, and those of `project` and `app`. A new field is one line of a table. */

export const ID = 'an id, or uid:<uid>';

/** What a list prints at most by default. */
export const LIST_LIMIT = 100;

export interface ListOption {
  flags: string;
  help: string;
  parse?: (text: string) => unknown;
  choices?: readonly string[];
}

/** An object with the five usual commands. */
export interface ObjectKind<T extends object> {
  name: string;
  description: string;
  /** What the commands take for one object; `<id>` when left out. */
  argument?: ObjectArgument;
  /** The option that every command needs, for objects whose names are unique in their owner only. */
  owner?: ListOption;
  fields: readonly Field[];
  /** Fills in what a creation needs and the project's configuration has. */
  complete?: (session: Session, body: Record<string, unknown>) => void;
  columns: Columns<T>;
  /** What else goes, for the question before a deletion. */
  deletes: string;
  createExample: string;
  updateExample: string;
  listHelp: string;
  listOptions: readonly ListOption[];
  list: (session: Session, options: Options) => List<T>;
  getOptions?: readonly ListOption[];
  get: (session: Session, id: string, options: Options) => PromiseLike<object>;
  create: (api: Posthorn, body: never, how: Creation, options: Options) => PromiseLike<Named>;
  update: (
    api: Posthorn,
    id: string,
    body: object,
    how: Upsert,
    options: Options,
  ) => PromiseLike<Named>;
  delete: (api: Posthorn, id: string, options: Options) => PromiseLike<unknown>;
}

interface ObjectArgument {
  name: string;
  help: string;
}

type Named = { id: string } | { name: string };

interface Creation {
  idempotencyKey?: string | undefined;
}

interface Upsert {
  upsert: boolean | undefined;
}

export function addProjectCommands(program: Command, session: Session): void {
  addObjectCommands(program, session, PROJECT_KIND);
}

export function addAppCommands(program: Command, session: Session): void {
  const app = addObjectCommands(program, session, APP_KIND);
  addHoldCommands(app, session, { name: 'app', of: 'all its webhooks', api: ({ apps }) => apps });
}

const HOLD_FIELDS = fieldsWith(HOLD_RULES, [
  {
    flags: '--until <time>',
    help: 'when the hold ends by itself, a time or from now, such as 2d',
  },
  { flags: '--reason <text>', help: 'why, for people' },
]);

const RESUME_FIELDS = fieldsWith(HOLD_RULES, [
  {
    flags: '--rate <count>',
    name: 'ratePerSecond',
    help: 'most waiting deliveries of one webhook that are released in a second',
  },
]);

/** What `hold` and `resume` need of a kind of objects. */
interface HeldKind {
  name: string;
  /** Whose deliveries wait. */
  of: string;
  api: (client: Session['api']) => {
    hold: (id: string, hold: BeginHold) => PromiseLike<object>;
    resume: (id: string, pace: EndHold) => PromiseLike<object>;
  };
}

/** Adds `hold` and `resume`. */
export function addHoldCommands(command: Command, session: Session, kind: HeldKind): void {
  const hold: Command<[string]> = command
    .command('hold')
    .argument('<id>', ID)
    .description(`let the deliveries of ${kind.of} wait, with their attempt numbers`)
    .addHelpText(
      'after',
      `\nExample:\n  posthorn ${kind.name} hold uid:orders --until 2d --reason "maintenance"`,
    );
  addFields(hold, HOLD_FIELDS);
  hold.action(async (id, options: Options) => {
    const body = await readBody(session, HOLD_FIELDS, options);
    const held = await kind.api(session.api).hold(id, body);
    session.output.done(`The ${kind.name} ${id} is on hold.`, held);
  });
  const resume: Command<[string]> = command
    .command('resume')
    .argument('<id>', ID)
    .description('end the hold; what waits is delivered in the background, oldest first');
  addFields(resume, RESUME_FIELDS);
  resume.action(async (id, options: Options) => {
    const body = await readBody(session, RESUME_FIELDS, options);
    const resumed = await kind.api(session.api).resume(id, body);
    session.output.done(`The ${kind.name} ${id} is resumed.`, resumed);
  });
}

/** Adds `list`, `get`, `create`, `update` and `delete`, and returns the command that has them. */
export function addObjectCommands<T extends object>(
  program: Command,
  session: Session,
  kind: ObjectKind<T>,
): Command {
  const command: Command = program.command(kind.name).description(kind.description);
  addListCommand(command, session, kind);
  const get = addOneCommand(command, 'get', kind)
    .description(`print ${articleOf(kind.name)}`)
    .action(async (id, options: Options) => {
      session.output.value(await kind.get(session, id, options));
    });
  addListOptions(get, kind.getOptions ?? []);
  addCreate(command, session, kind);
  addUpdate(command, session, kind);
  addOneCommand(command, 'delete', kind)
    .description(`delete ${articleOf(kind.name)} ${kind.deletes}`)
    .action(async (id, options: Options) => {
      await session.confirm(`Delete the ${kind.name} ${id} ${kind.deletes}?`);
      await kind.delete(session.api, id, options);
      session.output.done(`The ${kind.name} ${id} is deleted.`, { id });
    });
  return command;
}

/** Adds a command for one object. */
function addOneCommand(
  parent: Command,
  name: string,
  { argument = { name: 'id', help: ID }, owner }: Pick<ObjectKind<never>, 'argument' | 'owner'>,
): Command<[string]> {
  const command: Command<[string]> = parent
    .command(name)
    .argument(`<${argument.name}>`, argument.help);
  addOwner(command, owner);
  return command;
}

function addOwner(command: WithOptions, owner: ListOption | undefined): void {
  if (owner) command.addOption(new Option(owner.flags, owner.help).makeOptionMandatory());
}

/** Adds `list`, whose options choose the items. */
export function addListCommand<T>(
  parent: Command,
  session: Session,
  {
    listHelp,
    listOptions,
    list,
    columns,
    owner,
  }: {
    owner?: ListOption;
    listHelp: string;
    listOptions: readonly ListOption[];
    list: (session: Session, options: Options) => List<T>;
    columns: Columns<T>;
  },
): void {
  const command = parent
    .command('list')
    .description(listHelp)
    .option('--limit <count>', 'print at most this many', parseCount, LIST_LIMIT)
    .action(async ({ limit, ...options }) => {
      await session.output.list(list(session, options), columns, limit);
    });
  addOwner(command, owner);
  addListOptions(command, listOptions);
}

/** Adds options that follow from a table. */
export function addListOptions(command: WithOptions, options: readonly ListOption[]): void {
  for (const { flags, help, parse, choices } of options) {
    const option = new Option(flags, help);
    if (parse) option.argParser(parse);
    if (choices) option.choices(choices);
    command.addOption(option);
  }
}

function addCreate<T extends object>(parent: Command, session: Session, kind: ObjectKind<T>): void {
  const create: Command = parent
    .command('create')
    .description(`create ${articleOf(kind.name)}`)
    .addHelpText('after', `\nExample:\n  ${kind.createExample}`);
  addOwner(create, kind.owner);
  addFields(create, kind.fields);
  create
    .option('--idempotency-key <key>', 'create it once, however often the command runs within 24 h')
    .action(async (options: Options) => {
      const body = await readBody(session, kind.fields, options);
      kind.complete?.(session, body);
      requireFields(kind.fields, body);
      const idempotencyKey = options.idempotencyKey as string | undefined;
      const how = { idempotencyKey };
      session.output.value(await kind.create(session.api, body as never, how, options));
    });
}

function addUpdate<T extends object>(parent: Command, session: Session, kind: ObjectKind<T>): void {
  const update = addOneCommand(parent, 'update', kind)
    .description(`change fields of ${articleOf(kind.name)}; others keep their values`)
    .addHelpText('after', `\nExample:\n  ${kind.updateExample}`);
  addFields(update, kind.fields);
  addNull(update);
  update
    .option(
      '--upsert',
      `create it when nothing has the ${kind.argument?.name ?? 'uid'}; then all fields of a creation are needed`,
    )
    .action(async (id, options: Options) => {
      const body = await readBody(session, kind.fields, options);
      requireChange(kind.fields, body);
      const upsert = options.upsert === true ? true : undefined;
      const updated = await kind.update(session.api, id, body, { upsert }, options);
      const shown = 'id' in updated ? updated.id : updated.name;
      session.output.done(`The ${kind.name} ${shown} is up to date.`, updated);
    });
}

const articleOf = (name: string): string => `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`;

const NAME: FieldOption = { flags: '--name <name>', help: 'name' };
export const UID: FieldOption = {
  flags: '--uid <uid>',
  help: 'your own id: uid:<uid> names the object in every command',
};
export const METADATA: FieldOption = {
  flags: '--metadata <key=value>',
  help: 'your own key and value (repeatable); an update replaces all',
};
const DESCRIPTION: FieldOption = { flags: '--description <text>', help: 'description' };
const ENVIRONMENT: FieldOption = {
  flags: '--environment <name>',
  help: 'environment, fixed at the creation',
};
export const PROJECT: FieldOption = {
  flags: '--project <id>',
  name: 'projectId',
  help: 'project that it belongs to, fixed at the creation',
};

const PROJECT_KIND: ObjectKind<Project> = {
  name: 'project',
  description: 'projects, which hold apps',
  fields: fieldsWith(PROJECT_RULES, [NAME, UID, DESCRIPTION, METADATA, ENVIRONMENT]),
  columns: {
    id: ({ id }) => id,
    uid: ({ uid }) => uid,
    name: ({ name }) => name,
    environment: ({ environment }) => environment,
    created: ({ createdAt }) => createdAt,
  },
  deletes: 'with its apps and webhooks',
  createExample: 'posthorn project create --name Shop --uid shop',
  updateExample: 'posthorn project update uid:shop --description "Orders and refunds"',
  listOptions: [],
  listHelp: 'list projects, oldest first',
  list: ({ api }) => api.projects.list(),
  get: ({ api }, id) => api.projects.get(id),
  create: (api, body, options) => api.projects.create(body, options),
  update: (api, id, body, options) => api.projects.update(id, body, options),
  delete: (api, id) => api.projects.delete(id),
};

const APP_KIND: ObjectKind<App | FoundApp> = {
  name: 'app',
  description: 'apps, whose messages go to their webhooks',
  fields: fieldsWith(APP_RULES, [
    NAME,
    PROJECT,
    UID,
    DESCRIPTION,
    METADATA,
    {
      flags: '--store-responses',
      help: 'store the responses of endpoints (default; otherwise --no-store-responses)',
    },
    {
      flags: '--store-payloads <how>',
      help: 'erase the payload of a message once it is delivered, or retain it',
    },
    ENVIRONMENT,
  ]),
  columns: {
    id: ({ id }) => id,
    uid: ({ uid }) => uid,
    name: ({ name }) => name,
    environment: ({ environment }) => environment,
  },
  deletes: 'with its webhooks',
  createExample: 'posthorn app create --project uid:shop --name "Customer 17" --uid customer-17',
  updateExample: 'posthorn app update uid:customer-17 --metadata plan=gold',
  listOptions: [
    { flags: '--project <id>', help: 'only apps of this project' },
    { flags: '--search <text>', help: 'only apps whose name has this text' },
  ],
  listHelp: 'list apps of a project, oldest first, or of all projects',
  list: ({ api }, { project, search }) => {
    if (project !== undefined && search !== undefined) {
      throw new UsageFailure('Use --project or --search, not both');
    }
    return project === undefined
      ? api.apps.find(search === undefined ? {} : { text: search as string })
      : api.apps.list({ projectId: project as string });
  },
  get: ({ api }, id) => api.apps.get(id),
  create: (api, body, options) => api.apps.create(body, options),
  update: (api, id, body, options) => api.apps.update(id, body, options),
  delete: (api, id) => api.apps.delete(id),
};
