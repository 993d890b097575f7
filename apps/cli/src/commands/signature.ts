import type { Command } from '@commander-js/extra-typings';
import { sign, verify, VerifyError } from '@posthorn/verify';
import { CheckFailure, CommandFailure, EXIT, UsageFailure } from '../failures.ts';
import { hasMark } from '../files.ts';
import {
  type HeaderValue,
  parseDate,
  parseEach,
  parseHeader,
  parseSeconds,
  bytesOfFile,
  textOfFile,
  readVariable,
  refuseArgument,
} from '../options.ts';
import { requireHttpUrl } from '../profiles.ts';
import type { Session } from '../session.ts';

/* `signature`: what a receiver checks, tried by hand. Nothing is sent anywhere. */

interface BodyOptions {
  file?: string | undefined;
  secretStdin?: true | undefined;
  secretEnv?: string[] | undefined;
  /** Its key is any text. */
  serviceSignature?: true | undefined;
}

export function addSignatureCommands(program: Command, session: Session): void {
  const signature: Command = program
    .command('signature')
    .description('sign a body as Posthorn does, or verify one');
  addSign(signature, session);
  addVerify(signature, session);
}

function addSign(signature: Command, session: Session): void {
  const command = signature.command('sign');
  // Not in the chain below: its value has no type, and the other options would have none either.
  command.addOption(refuseArgument('--secret'));
  command
    .description('print the headers of a signed request, to test a receiver')
    .option('--file <path>', 'file with the body, byte for byte; standard input when left out')
    .option('--secret-env <variable>', 'secret of the webhook, from the environment', parseEach)
    .option('--secret-stdin', 'secret of the webhook, from standard input')
    .option('--id <id>', 'id of the message; a random one when left out')
    .option('--timestamp <time>', 'when it is signed, such as 2026-01-31T09:30:00Z', parseDate)
    .addHelpText(
      'after',
      '\nExample:\n  posthorn signature sign --file body.json --secret-env WEBHOOK_SECRET',
    )
    .action(async (options) => {
      const secrets = await readSecrets(session, options);
      const [secret] = secrets;
      if (secret === undefined || secrets.length > 1) {
        throw new UsageFailure('Set --secret-env or --secret-stdin, once');
      }
      const payload = await readBody(session, options);
      const { id, timestamp } = options;
      const headers = await sign({
        payload,
        secret,
        ...(id === undefined ? {} : { id }),
        ...(timestamp === undefined ? {} : { timestamp }),
      });
      session.output.value(headers);
    });
}

function addVerify(signature: Command, session: Session): void {
  const command = signature.command('verify');
  // Not in the chain below: its value has no type, and the other options would have none either.
  command.addOption(refuseArgument('--secret'));
  command
    .description('verify a request that was received; exit code 5 and the reason when it fails')
    .option('--file <path>', 'file with the body, byte for byte; standard input when left out')
    .option('--header <header>', '"name: value" of the request (repeatable)', parseHeader)
    .option('--headers-file <path>', 'file with such lines, or with a JSON object')
    .option('--secret-env <variable>', 'secret, from the environment (repeatable)', parseEach)
    .option('--secret-stdin', 'secret, from standard input')
    .option('--jwks-url <url>', 'address of the public keys, for signatures with ed25519')
    .option('--tolerance <duration>', 'how far the time may be off (default: 5m)', parseSeconds)
    .option('--service-signature', 'verify X-Service-Signature in place of webhook-signature')
    .addHelpText(
      'after',
      '\nExample:\n  posthorn signature verify --file body.json --headers-file headers.txt --secret-env WEBHOOK_SECRET',
    )
    .action(async (options) => {
      const { jwksUrl, tolerance, serviceSignature } = options;
      const secrets = await readSecrets(session, options);
      if (secrets.length === 0 && (jwksUrl === undefined || serviceSignature)) {
        const others = serviceSignature ? ' for --service-signature' : ' or --jwks-url';
        throw new UsageFailure(`Set --secret-env or --secret-stdin${others}`);
      }
      if (jwksUrl !== undefined) requireHttpUrl('--jwks-url', jwksUrl);
      const headers = readHeaders(session, options);
      const body = await readBody(session, options);
      const verified = verify({
        body,
        headers,
        ...(secrets.length === 0 ? {} : { secrets }),
        ...(jwksUrl === undefined ? {} : { jwksUrl }),
        ...(tolerance === undefined ? {} : { toleranceSeconds: tolerance }),
        ...(serviceSignature === undefined ? {} : { serviceSignature }),
      });
      await printResult(session, verified, body);
    });
}

async function printResult(
  { output }: Session,
  verified: Promise<{ id: string; timestamp: Date }>,
  body: Uint8Array,
): Promise<void> {
  try {
    const { id, timestamp } = await verified;
    const at = timestamp.toISOString();
    output.done(`good: ${id}, signed at ${at}`, { verified: true, id, timestamp: at });
  } catch (error) {
    if (!(error instanceof VerifyError)) throw error;
    const { reason, message } = error;
    if (output.isJson) output.value({ verified: false, reason, message });
    if (reason === 'keys_unavailable') throw new CommandFailure(message, EXIT.unreachable);
    // Editors of Windows write one. It is part of the body, as every byte of the file is.
    const mark = hasMark(body) ? '. The body begins with a byte-order mark: save it without' : '';
    throw new CheckFailure(`${reason}: ${message}${mark}`);
  }
}

async function readSecrets(
  session: Session,
  { file, secretEnv = [], secretStdin, serviceSignature }: BodyOptions,
): Promise<string[]> {
  const fromEnvironment = secretEnv.map((name) => {
    const secret = readVariable(session, '--secret-env', name);
    if (!serviceSignature) requireKey(`--secret-env ${name}`, secret);
    return secret;
  });
  if (!secretStdin) return fromEnvironment;
  if (file === undefined) throw new UsageFailure('Use --file for the body beside --secret-stdin');
  const secret = (await session.readStdin()).trim();
  if (!serviceSignature) requireKey('--secret-stdin', secret);
  return [...fromEnvironment, secret];
}

/** The prefix may be absent, as in Standard Webhooks. */
function requireKey(place: string, secret: string): void {
  if (/^(whsec_)?[A-Za-z0-9+/]+={0,2}$/.test(secret)) return;
  throw new UsageFailure(`${place}: expected whsec_ and base64`);
}

async function readBody(session: Session, { file }: BodyOptions): Promise<Uint8Array> {
  return file === undefined ? session.readStdinBytes() : bytesOfFile(session, '--file', file);
}

function readHeaders(
  session: Session,
  {
    header = [],
    headersFile,
  }: { header?: HeaderValue[] | undefined; headersFile?: string | undefined },
): Record<string, string> {
  const ofFile =
    headersFile === undefined
      ? {}
      : parseHeaders(textOfFile(session, '--headers-file', headersFile));
  return { ...ofFile, ...Object.fromEntries(header.map(({ key, value }) => [key, value])) };
}

/** Lines that are no header, such as the status line of a dump, are left out. */
function parseHeaders(text: string): Record<string, string> {
  if (text.trimStart().startsWith('{')) return parseHeaderObject(text);
  const lines = text.split(/\r?\n/).map((line) => /^([^:\s]+):\s*(.*)$/.exec(line));
  return Object.fromEntries(
    lines.flatMap((match) => (match ? [[match[1], match[2]?.trim()] as const] : [])),
  ) as Record<string, string>;
}

function parseHeaderObject(text: string): Record<string, string> {
  try {
    return JSON.parse(text) as Record<string, string>;
  } catch {
    throw new UsageFailure('--headers-file is neither lines of headers nor a JSON object');
  }
}
