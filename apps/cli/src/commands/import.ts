import { type Command, Option } from '@commander-js/extra-typings';
import { NotFoundError } from '@posthorn/client';
import { APP_RULES } from '@posthorn/client/rules';
import { CommandFailure, UsageFailure } from '../failures.ts';
import { readConvoy } from '../import/convoy.ts';
import {
  type Counts,
  Importer,
  type ImportReport,
  type ReportedFinding,
} from '../import/importer.ts';
import { FINDING_KINDS, type Mapped, type Target } from '../import/mapping.ts';
import { OUTPOST_URL, readOutpost } from '../import/outpost.ts';
import { PeerApi } from '../import/peer-api.ts';
import { readSvix, svixUrlOf } from '../import/svix.ts';
import type { DocumentOf } from '../plan/documents.ts';
import { requireHttpUrl } from '../profiles.ts';
import type { Session } from '../session.ts';

/** Shorter waits are as usual as requests. */
const SHOWN_WAIT_MS = 5_000;
const ENVIRONMENTS = APP_RULES.environment.choices;
type Environment = (typeof ENVIRONMENTS)[number];

interface ImportSettings {
  /** For people. */
  name: string;
  tokenVariable: string;
  project: string;
  environment: Environment;
  only: readonly string[];
  url?: string | undefined;
  tokenStdin?: boolean | undefined;
  urlOf: (token: string) => string;
  read: (api: PeerApi, target: Target) => AsyncIterable<Mapped>;
}

/** `import svix|convoy|outpost`. */
export function addImportCommands(program: Command, session: Session): void {
  const command = program
    .command('import')
    .description('bring apps and webhooks over from another service (docs/migrate.md)')
    .addHelpText(
      'after',
      '\nNothing changes at the other service. A second run changes nothing either, and goes on where the first one ended.\n' +
        'With --dry-run, the report says what would come over and what would not.',
    );
  addPeer(command, 'svix', 'Svix: event types, applications and endpoints').action(
    async (options) => {
      await importFrom(session, {
        ...options,
        name: 'Svix',
        tokenVariable: 'SVIX_TOKEN',
        urlOf: svixUrlOf,
        read: readSvix,
      });
    },
  );
  addPeer(command, 'convoy', 'Convoy: endpoints and subscriptions of one project')
    .requiredOption('--from-project <id>', 'id of the project at Convoy')
    .action(async ({ fromProject, ...options }) => {
      await importFrom(session, {
        ...options,
        name: 'Convoy',
        tokenVariable: 'CONVOY_API_KEY',
        urlOf: () => {
          throw new UsageFailure('Set --url, such as https://us.getconvoy.cloud/api');
        },
        read: (api, target) => readConvoy(api, fromProject, target),
      });
    });
  addPeer(command, 'outpost', 'Outpost: tenants and webhook destinations').action(
    async (options) => {
      await importFrom(session, {
        ...options,
        name: 'Outpost',
        tokenVariable: 'OUTPOST_API_KEY',
        urlOf: () => OUTPOST_URL,
        read: readOutpost,
      });
    },
  );
}

const ONLY: Readonly<Record<string, string>> = {
  svix: 'applications',
  convoy: 'owners of endpoints',
  outpost: 'tenants',
};

function addPeer<const Name extends string>(command: Command, name: Name, description: string) {
  return command
    .command(name)
    .description(description)
    .option('--url <url>', 'address of its API')
    .option('--token-stdin', 'read its token from standard input')
    .option(
      '--project <id>',
      'project of the apps: an id, or uid:<uid>, which is made',
      `uid:${name}`,
    )
    .addOption(
      new Option('--environment <name>', 'environment of the apps that are made')
        .choices(ENVIRONMENTS)
        .default('production' as const),
    )
    .option('--only <ids...>', `read only these ${ONLY[name] ?? 'objects'}`, []);
}

async function importFrom(session: Session, settings: ImportSettings): Promise<void> {
  const token = await readToken(session, settings);
  const { name, environment, only, project: projectId } = settings;
  const url = (settings.url ?? settings.urlOf(token)).replace(/\/+$/, '');
  requireHttpUrl('--url', url);
  const { output, world, options } = session;
  const onWait = (text: string, ms: number): void => {
    if (ms >= SHOWN_WAIT_MS || options.verbose) output.note(text);
  };
  const peer = new PeerApi({ name, url, token, signal: world.signal, onWait });
  const isDryRun = options.dryRun ?? false;
  const sending = session.connect(session.credentials, { sendsDryRuns: true });
  const importer = new Importer({
    api: session.api,
    from: name,
    projectId,
    project: await missingProject(session, projectId, { name, environment }),
    isDryRun,
    importWebhooks: (webhooks) => {
      const document = { openapi: '3.1.0', webhooks };
      return sending.eventTypes.import(projectId, { document, dryRun: isDryRun });
    },
    onProgress: ({ apps, webhooks }) => {
      output.progress(`${apps.read} apps, ${webhooks.read} webhooks`);
    },
  });
  await printAfter(session, importer, () =>
    importer.run(settings.read(peer, { projectId, environment, only })),
  );
  if (importer.hasFailures) throw new CommandFailure('Not everything came over: see the report');
}

/** The report is printed after a failure too. */
async function printAfter(
  session: Session,
  importer: Importer,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } finally {
    session.output.progress('');
    if (!session.world.signal.aborted) printReport(session, importer.report);
  }
}

async function readToken(
  session: Session,
  { tokenStdin, tokenVariable }: ImportSettings,
): Promise<string> {
  const token = tokenStdin ? await session.readStdin() : session.world.env[tokenVariable];
  if (token !== undefined && token.trim() !== '') return token.trim();
  throw new UsageFailure(`Set ${tokenVariable}, or use --token-stdin`);
}

/** Returns the project to make; null when it is there. */
async function missingProject(
  session: Session,
  projectId: string,
  { name, environment }: { name: string; environment: Environment },
): Promise<DocumentOf<'Project'> | null> {
  try {
    await session.api.projects.get(projectId);
    return null;
  } catch (error) {
    if (!(error instanceof NotFoundError) || !projectId.startsWith('uid:')) throw error;
    const uid = projectId.slice('uid:'.length);
    return { kind: 'Project', uid, source: '--project', fields: { name, environment } };
  }
}

function printReport({ output }: Session, report: ImportReport): void {
  if (output.isJson) {
    output.value(report);
    return;
  }
  const { from, project, isDryRun, eventTypes, apps, webhooks, findings } = report;
  output.note(`${isDryRun ? 'Would come' : 'Came'} from ${from} to the project ${project}:`);
  output.table<[string, Counts]>(
    [
      ['event types', eventTypes],
      ['apps', apps],
      ['webhooks', webhooks],
    ],
    {
      '': ([kind]) => kind,
      read: ([, { read }]) => read,
      created: ([, { created }]) => created,
      updated: ([, { updated }]) => updated,
      unchanged: ([, { unchanged }]) => unchanged,
      failed: ([, { failed }]) => failed,
    },
  );
  for (const finding of findings) output.done(lineOf(finding));
}

const NAMED_IN_LINE = 3;

function lineOf({ kind, about, count, objects }: ReportedFinding): string {
  const named = objects
    .slice(0, NAMED_IN_LINE)
    .map(({ object, detail }) => (detail === undefined ? object : `${object} (${detail})`));
  const more = count > NAMED_IN_LINE ? ', …' : '';
  return `${count} × ${FINDING_KINDS[kind]}: ${about}: ${named.join(', ')}${more}`;
}
