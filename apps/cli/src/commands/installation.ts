import { Argument, type Command } from '@commander-js/extra-typings';
import type { Found } from '@posthorn/client';
import { CommandFailure, EXIT, UsageFailure } from '../failures.ts';
import { parseEach, parseHeader, requireJsonObject, textOfFile } from '../options.ts';
import { isSecret, type Session } from '../session.ts';

/* What leads to the installation itself: its dashboard, and requests of any kind. */

/** `open`. */
export function addOpenCommand(program: Command, session: Session): void {
  program
    .command('open')
    .argument('[id]', 'whose page is opened: an id of whatever kind')
    .description('open the dashboard in the browser')
    .action(async (id) => {
      const page = id === undefined ? '/' : pageOf(await session.api.find(id));
      const url = `${session.credentials.url.replace(/\/+$/, '')}/dashboard${page}`;
      session.output.done(url, { url });
      if (session.options.dryRun || (await session.world.browse(url))) return;
      session.output.note('No browser can be started here: open the address yourself.');
    });
}

function pageOf({ kind, id, messageId = '' }: Found): string {
  switch (kind) {
    case 'project':
      return `/projects/${id}`;
    case 'app':
      return `/apps/${id}`;
    case 'webhook':
      return `/webhooks/${id}`;
    case 'message':
      return `/messages/${id}`;
    case 'delivery':
    case 'attempt':
      return `/messages/${messageId}`;
    case 'resend':
      return `/resends/${id}`;
    case 'cancellation':
      return '/resends';
    case 'api_key':
      return '/api-keys';
  }
}

const METHODS = ['GET', 'POST', 'PUT', 'DELETE'] as const;

const EXAMPLES = `
Examples:
  posthorn api GET '/webhook-messages?limit=5'
  posthorn api PUT /webhooks/uid:orders --data '{"rateLimitPerSecond": 10}'
  posthorn api POST /projects --stdin --header 'Idempotency-Key: shop-1' < project.json

The path is that of the API, with /api/v1 before it or not. The answer is printed as it is, with what
is around its data, and also when the API refuses: then the exit code is that of every command.`;

/** `api`. */
export function addApiCommand(program: Command, session: Session): void {
  program
    .command('api')
    .addArgument(
      new Argument('<method>', METHODS.join(', ')).argParser((text) => text.toUpperCase()),
    )
    .argument('<path>', 'path of the API, such as /webhooks/uid:orders')
    .description('make a request to the API, and print its answer')
    .option('--data <json>', 'body: a JSON object')
    .option('--file <path>', 'file with the body, or - for standard input')
    .option('--stdin', 'read the body from standard input')
    .option('--query <key=value>', 'parameter of the address (repeatable)', parseEach)
    .option('--header <name: value>', 'header of the request (repeatable)', parseHeader)
    .addHelpText('after', EXAMPLES)
    .action(async (method, path, { query = [], header = [], ...source }) => {
      if (!METHODS.some((each) => each === method)) {
        throw new UsageFailure(`<method>: expected ${METHODS.join(', ')}`);
      }
      const address = addressOf(path, query);
      const body = await readBody(session, source);
      if (method === 'GET' && body !== undefined) throw new UsageFailure('GET has no body');
      const headers = header.map(({ key, value }): [string, string] => [key, value]);
      printAnswer(session, await session.request({ method, path: address, body, headers }));
    });
}

/** Below the address of the API: a path cannot lead to another host, which would get the API key. */
function addressOf(path: string, query: readonly string[]): string {
  if (/^\w+:\/\//.test(path))
    throw new UsageFailure('<path>: expected a path, not a whole address');
  const below = path.replace(/^\/*/, '/').replace(/^\/api\/v1(?=\/)/, '');
  const parameters = query.map((pair) => {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(pair) ?? [];
    if (name === undefined || value === undefined) {
      throw new UsageFailure('--query: expected key=value');
    }
    return `${encodeURIComponent(name)}=${encodeURIComponent(value)}`;
  });
  if (parameters.length === 0) return below;
  return `${below}${below.includes('?') ? '&' : '?'}${parameters.join('&')}`;
}

interface BodySource {
  data?: string | undefined;
  file?: string | undefined;
  stdin?: true | undefined;
}

/** Byte for byte. */
async function readBody(
  session: Session,
  { data, file, stdin }: BodySource,
): Promise<string | undefined> {
  const sources = [data, file, stdin].filter((each) => each !== undefined);
  if (sources.length === 0) return undefined;
  if (sources.length > 1) throw new UsageFailure('Use --data, --file or --stdin, one of them');
  const isInput = stdin ?? file === '-';
  const name = data === undefined ? (isInput ? 'Standard input' : (file ?? '')) : '--data';
  const text =
    data ?? (isInput ? await session.readStdin() : textOfFile(session, '--file', file ?? ''));
  requireJsonObject(name, text);
  if (data !== undefined) refuseSecrets(JSON.parse(data) as object);
  return text;
}

function refuseSecrets(body: object): void {
  const secret = Object.keys(body).find(isSecret);
  if (secret === undefined) return;
  throw new UsageFailure(
    `Other users see arguments, and shells store them: put ${secret} into a file for --file, or use --stdin`,
  );
}

function printAnswer(
  { output }: Session,
  { status, text }: { status: number; text: string },
): void {
  output.answer(text);
  if (status < 400) return;
  const exitCode = status === 401 || status === 403 ? EXIT.notAllowed : EXIT.refused;
  throw new CommandFailure(`The API answered ${status}`, exitCode);
}
