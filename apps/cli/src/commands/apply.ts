import type { Command } from '@commander-js/extra-typings';
import { readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CheckFailure, CommandFailure, describeFailure, UsageFailure } from '../failures.ts';
import { readText, replaceFile } from '../files.ts';
import {
  applyPlan,
  assignUids,
  type Outcome,
  readEverything,
  readPresent,
  type Scope,
} from '../plan/adapter.ts';
import {
  type Document,
  MAX_SOURCE_BYTES,
  parseDocuments,
  type SourceText,
} from '../plan/documents.ts';
import { type Export, exportDocuments, toYaml } from '../plan/export.ts';
import { type Change, type FieldChange, type Plan, planChanges } from '../plan/plan.ts';
import { escapeControls, jsonOf } from '../output.ts';
import type { Session } from '../session.ts';

const STDIN = '-';

interface FileOptions {
  file: readonly string[];
  name?: string | undefined;
  prune?: boolean | undefined;
}

/** `export`, `diff` and `apply`. */
export function addApplyCommands(program: Command, session: Session): void {
  const collect = (path: string, paths?: readonly string[]): readonly string[] => [
    ...(paths ?? []),
    path,
  ];
  const file = '-f, --file <path>';
  const fileHelp = 'YAML file, folder of them, or - for standard input; may be repeated';
  program
    .command('export')
    .description(
      'print projects, event types, apps and webhooks as documents for apply, without secrets',
    )
    .option('-f, --file <path>', 'write a file in place of standard output')
    .option('--project <id>', 'only this project, its event types, its apps and their webhooks')
    .option('--app <id>', 'only this app and its webhooks')
    .option('--assign-uids', 'make the id of each object without a uid its uid')
    .action((options) => runExport(session, options));
  program
    .command('diff')
    .description('print what apply would change, and exit with 5 if that is anything')
    .requiredOption(file, fileHelp, collect)
    .option('--name <name>', 'name in metadata.managedBy of each object')
    .option('--prune', 'delete what has that name and no document')
    .action((options) => runDiff(session, options));
  program
    .command('apply')
    .description('create, update and with --prune delete objects, until they are as the documents')
    .requiredOption(file, fileHelp, collect)
    .option('--name <name>', 'name in metadata.managedBy of each object')
    .option('--prune', 'delete what has that name and no document')
    .action((options) => runApply(session, options));
}

async function runDiff(session: Session, options: FileOptions): Promise<void> {
  const plan = await makePlan(session, options);
  printPlan(session, plan);
  if (plan.changes.length > 0) throw new CheckFailure(`${summaryOf(plan)}: see posthorn apply`);
}

async function runApply(session: Session, options: FileOptions): Promise<void> {
  const plan = await makePlan(session, options);
  const { output } = session;
  // Values of the environment are in the requests, which is why the dry run does not print one.
  if (session.options.dryRun) {
    printPlan(session, plan);
    return;
  }
  if (plan.changes.length === 0) {
    for (const note of plan.notes) output.note(note);
    output.done(`Nothing to change: ${summaryOf(plan)}.`, {
      changes: [],
      unchanged: plan.unchanged,
    });
    return;
  }
  for (const line of linesOf(plan)) output.note(line);
  await session.confirm(`${summaryOf(plan)}. Apply?`);
  let count = 0;
  const outcomes = await applyPlan(session.api, plan, {
    onOutcome(outcome) {
      count += 1;
      output.progress(`${count} of ${plan.changes.length}`);
      printFailure(session, outcome);
    },
  });
  output.progress('');
  const failed = outcomes.filter(({ error }) => error !== null).length;
  const text = `${outcomes.length - failed} of ${outcomes.length} changes are made.`;
  output.done(text, { changes: outcomes.map(shownOutcome), unchanged: plan.unchanged });
  if (failed > 0) throw new CommandFailure(`${failed} of ${outcomes.length} changes failed`);
}

async function makePlan(session: Session, options: FileOptions): Promise<Plan> {
  const { name, prune } = options;
  if (prune && name === undefined) throw new UsageFailure('--prune needs --name');
  if (name === '') throw new UsageFailure('--name must not be empty');
  const documents = await readDocuments(session, options.file);
  return planChanges(documents, await readPresent(session.api, documents, { prune }), {
    name,
    prune,
  });
}

/** Throws when there are none: with `--prune`, an empty file would delete everything. */
async function readDocuments(session: Session, paths: readonly string[]): Promise<Document[]> {
  const sources: SourceText[] = [];
  let bytes = 0;
  for (const path of paths.flatMap((each) => filesOf(each, session.world.folder))) {
    const isFile = path !== STDIN;
    bytes += isFile ? statSync(path).size : 0;
    if (bytes > MAX_SOURCE_BYTES) throw new UsageFailure('The documents are too large');
    const text = isFile ? readText(path) : await session.readStdin();
    sources.push({ name: isFile ? path : 'standard input', text });
  }
  const documents = parseDocuments(sources, session.world.env);
  if (documents.length === 0) throw new UsageFailure(`${paths.join(', ')}: there are no documents`);
  return documents;
}

function filesOf(path: string, folder: string): string[] {
  if (path === STDIN) return [STDIN];
  const absolute = resolve(folder, path);
  const found = statSync(absolute, { throwIfNoEntry: false });
  if (!found) throw new UsageFailure(`${path} does not exist`);
  if (!found.isDirectory()) return [absolute];
  const names = readdirSync(absolute).filter((name) => /\.ya?ml$/.test(name));
  if (names.length === 0) throw new UsageFailure(`${path} has no .yaml file`);
  return names.sort().map((name) => join(absolute, name));
}

function printPlan({ output }: Session, plan: Plan): void {
  for (const note of plan.notes) output.note(note);
  const { unchanged, notes } = plan;
  if (output.isJson) output.value({ changes: plan.changes.map(shownChange), unchanged, notes });
  else
    output.raw(
      linesOf(plan)
        .map((line) => `${escapeControls(line)}\n`)
        .join(''),
    );
}

const MARKS = { create: '+', update: '~', delete: '-', refuse: '!' } as const;

function linesOf({ changes }: Plan): string[] {
  return changes.flatMap((change) => {
    const title = `${MARKS[change.action]} ${change.kind} ${change.uid}`;
    if (change.action === 'refuse') return [`${title}: ${change.reason}`];
    return [title, ...('fields' in change ? change.fields.map(lineOf) : [])];
  });
}

function lineOf(change: FieldChange): string {
  const { field, isSecret, before, after } = change;
  if (isSecret) return `    ${field}: (not shown)`;
  const value = JSON.stringify(after);
  return `    ${field}: ${'before' in change ? `${JSON.stringify(before)} → ${value}` : value}`;
}

function summaryOf({ changes, unchanged }: Plan): string {
  const count = (wanted: Change['action']): number =>
    changes.filter(({ action }) => action === wanted).length;
  const refused = count('refuse');
  const parts = [
    `${count('create')} to create`,
    `${count('update')} to update`,
    `${count('delete')} to delete`,
    `${unchanged} unchanged`,
    ...(refused > 0 ? [`${refused} not possible`] : []),
  ];
  return parts.join(', ');
}

/** Without the body of the request, which has secrets. */
function shownChange(change: Change): object {
  const { action, kind, uid } = change;
  if (change.action === 'refuse') return { action, kind, uid, reason: change.reason };
  return { action, kind, uid, ...('fields' in change ? { fields: change.fields } : {}) };
}

function shownOutcome({ change, error }: Outcome): object {
  const { action, kind, uid } = change;
  return { action, kind, uid, error: error === null ? null : messageOf(error) };
}

function messageOf(error: unknown): string {
  return describeFailure(error)
    .lines.map((line) => line.trim().replace(/^error: /, ''))
    .join('; ');
}

function printFailure({ output }: Session, { change, error }: Outcome): void {
  if (error === null) return;
  output.progress('');
  const [first = '', ...others] = describeFailure(error).lines;
  output.error([
    `error: ${change.kind} ${change.uid}: ${first.replace(/^error: /, '')}`,
    ...others,
  ]);
}

interface ExportOptions extends Scope {
  file?: string | undefined;
  assignUids?: true | undefined;
}

async function runExport(
  session: Session,
  { file, assignUids: isNaming, project, app }: ExportOptions,
): Promise<void> {
  if (project !== undefined && app !== undefined) {
    throw new UsageFailure('Use --project or --app, not both');
  }
  const { output, api, world } = session;
  const present = await readEverything(api, { project, app });
  const named = isNaming ? await assignUids(api, present) : present;
  const exported = exportDocuments(named, present.others);
  const { documents } = exported;
  const text = output.isJson
    ? `${jsonOf(documents)}\n`
    : toYaml(documents) + commentOn(exported.unnamed);
  if (file === undefined || file === STDIN) output.raw(text);
  else {
    const path = resolve(world.folder, file);
    replaceFile(path, text);
    output.note(`${documents.length} documents are in ${file}.`);
  }
  noteGaps(session, exported);
  const { length: missing } = exported.unnamed;
  // JSON has no comments: the exit code says that it is not whole.
  if (output.isJson && missing > 0) {
    throw new CheckFailure(`${missing} without a uid are not in the export: see --assign-uids`);
  }
}

/** An export that lacks objects must not look like a whole one: they are named at its end. */
function commentOn(unnamed: Export['unnamed']): string {
  if (unnamed.length === 0) return '';
  const lines = unnamed.map((each) => `#   ${nameOfUnnamed(each)}\n`);
  return `# Without a uid, and not in this export (see posthorn export --assign-uids):\n${lines.join('')}`;
}

function nameOfUnnamed({ kind, id, fields }: Export['unnamed'][number]): string {
  const name = typeof fields.name === 'string' ? ` (${escapeControls(fields.name)})` : '';
  return `${kind} ${id}${name}`;
}

function noteGaps({ output }: Session, { unnamed, withTls }: Export): void {
  for (const { uid } of withTls) {
    output.note(
      `Webhook ${uid ?? ''}: its tls is not in the export, because the API shows no certificates`,
    );
  }
  if (unnamed.length === 0) return;
  output.note('Without a uid, and not in the export (see --assign-uids):');
  for (const each of unnamed) output.note(`  ${nameOfUnnamed(each)}`);
}
