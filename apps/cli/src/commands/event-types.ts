import type { Command } from '@commander-js/extra-typings';
import type { EventType, ImportedEventTypes, ListedEventType } from '@posthorn/client';
import { EVENT_TYPE_RULES } from '@posthorn/client/rules';
import { resolve } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { CheckFailure, UsageFailure } from '../failures.ts';
import { readText } from '../files.ts';
import { fieldsWith, type Options, parseCount } from '../options.ts';
import { jsonOf } from '../output.ts';
import { MAX_SOURCE_BYTES } from '../plan/documents.ts';
import type { Session } from '../session.ts';
import { addObjectCommands, type ObjectKind } from './objects.ts';

/* The event types of a project, one by one, and its catalogue as an OpenAPI document. */

const STDIN = '-';
const PROJECT = '--project <id>';
const PROJECT_HELP = 'project of the catalogue: an id, or uid:<uid>';

const EVENT_TYPE_FIELDS = fieldsWith(EVENT_TYPE_RULES, [
  {
    flags: '--name <name>',
    help: 'name, which messages have as their eventType; it never changes',
  },
  { flags: '--description <text>', help: 'description' },
  { flags: '--group <name>', help: 'group in which it is listed' },
  { flags: '--schema <json>', help: 'JSON Schema of the payload, as JSON or @ and a file' },
  { flags: '--example <json>', help: 'payload that meets the schema, as JSON or @ and a file' },
  { flags: '--deprecated', help: 'mark it wherever people choose (otherwise --no-deprecated)' },
  {
    flags: '--archived',
    help: 'show it to nobody who chooses (otherwise --no-archived)',
  },
]);

const projectOf = ({ project }: Options): string => project as string;

const EVENT_TYPE_KIND: ObjectKind<EventType | ListedEventType> = {
  name: 'event-type',
  description: 'the catalogue of a project',
  argument: { name: 'name', help: 'its name' },
  owner: { flags: PROJECT, help: PROJECT_HELP },
  fields: EVENT_TYPE_FIELDS,
  columns: {
    name: ({ name }) => name,
    group: ({ group }) => group,
    version: ({ schemaVersion }) => schemaVersion,
    state: ({ archived, deprecated }) =>
      archived ? 'archived' : deprecated ? 'deprecated' : 'active',
  },
  deletes: 'with its earlier schemas',
  createExample: 'posthorn event-type create --project uid:shop --name order.paid --group Orders',
  updateExample: 'posthorn event-type update order.paid --project uid:shop --schema @order.json',
  listOptions: [
    { flags: '--group <name>', help: 'only event types of this group' },
    { flags: '--archived', help: 'only archived ones' },
    { flags: '--no-archived', help: 'only those that are not archived' },
  ],
  listHelp: 'list the event types of a project by name',
  list: ({ api }, { group, archived, ...options }) =>
    api.eventTypes.list(projectOf(options), {
      ...(group !== undefined && { group: group as string }),
      ...(archived !== undefined && { archived: archived as boolean }),
    }),
  getOptions: [
    {
      flags: '--schema-version <number>',
      help: 'show this earlier schema',
      parse: parseCount,
    },
  ],
  get: ({ api }, name, { schemaVersion, ...options }) =>
    api.eventTypes.get(
      projectOf(options),
      name,
      schemaVersion === undefined ? {} : { version: schemaVersion as number },
    ),
  create: (api, body, how, options) => api.eventTypes.create(projectOf(options), body, how),
  update: (api, name, body, how, options) =>
    api.eventTypes.update(projectOf(options), name, body, how),
  delete: (api, name, options) => api.eventTypes.delete(projectOf(options), name),
};

export function addEventTypeCommands(program: Command, session: Session): void {
  const eventType = addObjectCommands(program, session, EVENT_TYPE_KIND);
  eventType
    .command('import')
    .argument('<file>', 'OpenAPI document in JSON or YAML, or - for standard input')
    .description('create and change event types until they are as the webhooks of a document')
    .requiredOption(PROJECT, PROJECT_HELP)
    .option('--archive-missing', 'archive event types that the document does not have')
    .addHelpText(
      'after',
      '\nWith --dry-run, prints what would change, and exits with 5 if that is anything.\n\n' +
        'Example:\n  posthorn event-type import openapi.yaml --project uid:shop --dry-run',
    )
    .action((file, options) => runImport(session, file, options));
  eventType
    .command('export')
    .description('print the event types that are not archived as an OpenAPI 3.1 document')
    .requiredOption(PROJECT, PROJECT_HELP)
    .option('--yaml', 'in YAML')
    .action(async ({ project, yaml }) => {
      const document = await session.api.eventTypes.export(project);
      session.output.raw(yaml ? stringify(document) : `${jsonOf(document)}\n`);
    });
}

interface ImportOptions {
  project: string;
  archiveMissing?: true | undefined;
}

async function runImport(
  session: Session,
  file: string,
  { project, archiveMissing }: ImportOptions,
): Promise<void> {
  const { options, world } = session;
  const text =
    file === STDIN ? await session.readStdin() : readText(resolve(world.folder, file), file);
  const document = partsOf(readDocument(text, file === STDIN ? 'standard input' : file));
  const dryRun = options.dryRun ?? false;
  const api = session.connect(session.credentials, { sendsDryRuns: true });
  const imported = await api.eventTypes.import(project, {
    document,
    dryRun,
    archiveMissing: archiveMissing ?? false,
  });
  print(session, imported, dryRun);
  if (dryRun && imported.changes.length > 0) {
    throw new CheckFailure(`${imported.changes.length} event types would change`);
  }
}

/** Aliases may repeat this many nodes. */
const MAX_ALIASES = 100;

/** Reads YAML, of which JSON is a part. Throws a UsageFailure when it is not one object. */
function readDocument(text: string, name: string): Record<string, unknown> {
  if (Buffer.byteLength(text) > MAX_SOURCE_BYTES) {
    throw new UsageFailure(`${name} has more than ${MAX_SOURCE_BYTES} bytes`);
  }
  const [document, ...others] = parseAllDocuments(text, {
    version: '1.2',
    stringKeys: true,
    logLevel: 'silent',
  });
  const [fault] = document?.errors ?? [];
  if (fault) throw new UsageFailure(`${name}: ${fault.message}`);
  const value: unknown = valueOf(() => document?.toJS({ maxAliasCount: MAX_ALIASES }), name);
  if (others.length > 0 || typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new UsageFailure(`${name} must be one OpenAPI document`);
  }
  return value as Record<string, unknown>;
}

/** Aliases beyond the limit throw. */
function valueOf(read: () => unknown, name: string): unknown {
  try {
    return read();
  } catch (error) {
    throw new UsageFailure(`${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** What the API reads of a document. It takes 1 MiB, and `paths` is most of many documents. */
const PARTS = new Set(['openapi', 'webhooks', 'x-webhooks', 'components']);

function partsOf(document: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(document).filter(([name]) => PARTS.has(name)));
}

function print({ output }: Session, imported: ImportedEventTypes, isDryRun: boolean): void {
  if (output.isJson) {
    output.value(imported);
    return;
  }
  const { created, updated, archived, unchanged, changes } = imported;
  output.table(changes, {
    'event type': ({ name }) => name,
    [isDryRun ? 'would be' : 'change']: ({ change }) => change,
  });
  output.done(
    `${created} created, ${updated} updated, ${archived} archived, ${unchanged} unchanged.`,
  );
}
