import type { Command } from '@commander-js/extra-typings';
import {
  AuthenticationError,
  ConnectionError,
  type Message,
  PermissionError,
  type SendManyMessage,
  TimeoutError,
} from '@posthorn/client';
import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { addAbortSignal, type Readable } from 'node:stream';
import { CheckFailure, Interrupted, UsageFailure } from '../failures.ts';
import { textOf } from '../files.ts';
import {
  bytesOfFile,
  parseCount,
  openFile,
  parseEach,
  parseGivenTime,
  type GivenTime,
  parseRate,
  parseTimeoutMs,
  requireJsonObject,
} from '../options.ts';
import { type Line, rawFieldOf, readLines } from '../send/read-lines.ts';
import { type Outgoing, Pacer, sendAll } from '../send/send-all.ts';
import { sendBatch } from '../send/send-batch.ts';
import { type SentMessage, SendReport, stateOf } from '../send/send-report.ts';
import { DryRunEnd, type Session } from '../session.ts';

interface SendOptions {
  app?: string | undefined;
  webhook?: string | undefined;
  payload?: string | undefined;
  file?: string | undefined;
  stdin?: true | undefined;
  ndjson?: true | undefined;
  messages?: true | undefined;
  eventType?: string | undefined;
  tag?: string[] | undefined;
  externalId?: string | undefined;
  orderingKey?: string | undefined;
  deliverAt?: GivenTime | undefined;
  expiresAt?: GivenTime | undefined;
  retentionDays?: number | undefined;
  idempotencyKey?: string | undefined;
  count?: number | undefined;
  rate?: number | undefined;
  concurrency: number;
  wait?: true | undefined;
  timeout?: number | undefined;
}

/** Of many messages, whose keys begin with `key`. */
type ManyOptions = SendOptions & { key: string };

const WAIT_MS = 60_000;
/** Of many messages. With 2, as elsewhere, a quota of requests would refuse some. */
const RETRIES_OF_MANY = 6;
/** The fields of a message beside its payload, about. */
const OTHER_BYTES = 256;

const EXAMPLES = `
Examples:
  posthorn message send --app uid:customer-17 --event-type order.paid --payload '{"id":17}'
  posthorn message send --app uid:customer-17 --file order.json --wait
  posthorn message send --app uid:customer-17 --payload '{"load":true}' --count 1000 --rate 50
  tail -f events.ndjson | posthorn message send --app uid:customer-17 --stdin --ndjson

Without --app and --webhook, messages go to the app of .posthorn/config.toml, else to the one that
posthorn listen uses. Payloads are delivered byte for byte. Lines, and messages of --count, are sent
in batches of up to 1,000. After an interruption, the same command with the --idempotency-key of
the first goes on where that ended.`;

export function addSend(message: Command, session: Session): void {
  message
    .command('send')
    .description('send a message, or many')
    .option('--app <id>', 'app whose webhooks get it')
    .option('--webhook <id>', 'the only webhook that gets it, in place of --app')
    .option('--payload <json>', 'payload: a JSON object')
    .option('--file <path>', 'file with the payload')
    .option('--stdin', 'read the payload from standard input')
    .option('--ndjson', 'the file or input has a payload in each line; each becomes a message')
    .option('--messages', 'its lines are messages: payload, and as needed appId, eventType, tags …')
    .option('--event-type <type>', 'event type, by which webhooks choose')
    .option('--tag <tag>', 'text by which you find it (repeatable)', parseEach)
    .option('--external-id <id>', 'your own id of the message')
    .option('--ordering-key <key>', 'webhooks with an order get messages with it one by one')
    .option('--deliver-at <time>', 'start no attempt before then, or 2h for in', parseGivenTime)
    .option('--expires-at <time>', 'start no attempt from then on, or 2h for in', parseGivenTime)
    .option('--retention-days <n>', 'remove it so many days after its creation', parseCount)
    .option('--idempotency-key <key>', 'send it once, however often the command runs within 24 h')
    .option(
      '--count <n>',
      'send the payload this many times, each as a message of its own',
      parseCount,
    )
    .option('--rate <per-second>', 'messages to start per second', parseRate)
    .option('--concurrency <n>', 'batches at once; with 1, the order is kept', parseCount, 1)
    .option('--wait', 'wait until each is delivered; exit code 5 when one is not')
    .option('--timeout <duration>', 'wait at most this long (default: 60s)', parseTimeoutMs)
    .addHelpText('after', EXAMPLES)
    .action(async (options) => {
      checkOptions(options);
      const { ndjson, messages, count, idempotencyKey: key = randomUUID() } = options;
      if (ndjson ?? messages) await sendLines(session, { ...options, key });
      else if (count === undefined) await sendOne(session, options);
      else await sendCount(session, { ...options, key }, count);
    });
}

function checkOptions(options: SendOptions): void {
  const { app, webhook, payload, file, stdin, ndjson, messages, count } = options;
  const sources = [payload, file, stdin].filter((each) => each !== undefined);
  if (sources.length !== 1) {
    throw new UsageFailure(`Set --payload '{"hello":"world"}', --file or --stdin: one of them`);
  }
  if (app !== undefined && webhook !== undefined) {
    throw new UsageFailure('Use --app or --webhook, not both');
  }
  const isLines = ndjson ?? messages ?? false;
  if (isLines && payload !== undefined) {
    throw new UsageFailure('Lines are read from --file or --stdin, not from --payload');
  }
  if (isLines && count !== undefined) {
    throw new UsageFailure('--count is for one payload, not for lines');
  }
  const isRelative = [options.deliverAt, options.expiresAt].some((time) => time?.isRelative);
  if (options.idempotencyKey !== undefined && isRelative) {
    throw new UsageFailure(
      'With --idempotency-key, give times such as 2026-01-31T09:30:00Z: a duration means another time in each run',
    );
  }
}

/** The options with which the command goes on, or is repeated, without sending twice. */
function repeatOptions({ deliverAt, expiresAt }: SendOptions, key: string): string {
  const times = [
    ...(deliverAt?.isRelative ? [`--deliver-at ${deliverAt.at}`] : []),
    ...(expiresAt?.isRelative ? [`--expires-at ${expiresAt.at}`] : []),
  ];
  return [`--idempotency-key ${key}`, ...times].join(' ');
}

async function sendOne(session: Session, options: SendOptions): Promise<void> {
  const { output } = session;
  const rawPayload = await readPayload(session, options);
  session.requireCredentials();
  const target = await targetOf(session, options);
  const { idempotencyKey, wait, timeout } = options;
  const fields = { ...fieldsOf(options), ...target, rawPayload };
  const sent = session.api.messages.send(fields, { idempotencyKey });
  const created = await sent.catch((error: unknown) => {
    noteRepeat(session, options, error);
    throw error;
  });
  const ended = wait ? await endOf(session, created.id, timeout) : null;
  const message = ended ?? { ...created, status: wait ? 'pending' : 'accepted' };
  const state = stateOf(message);
  output.done(`${state}, webhooks: ${message.deliveries.length}`, ended ?? created);
  if (wait && !message.delivered) throw new CheckFailure(state);
}

/** A request that failed may have been carried out all the same. */
function noteRepeat({ output }: Session, options: SendOptions, error: unknown): void {
  const { idempotencyKey } = error as { idempotencyKey?: string };
  const isUncertain = error instanceof ConnectionError || error instanceof TimeoutError;
  if (!isUncertain || idempotencyKey === undefined || isDryRun(error)) return;
  output.note(`To repeat it without sending twice: ${repeatOptions(options, idempotencyKey)}`);
}

const isDryRun = (error: unknown): boolean =>
  (error as { cause?: unknown } | null)?.cause instanceof DryRunEnd;

/** Throws when it is not one JSON object. */
async function readPayload(session: Session, options: SendOptions): Promise<string> {
  const { payload, file } = options;
  const source = payload === undefined ? (file ?? 'Standard input') : '--payload';
  const text = payload ?? textOf(await readPayloadBytes(session, file), source);
  requireJsonObject(source, text);
  return text;
}

function readPayloadBytes(session: Session, file: string | undefined): Promise<Buffer> | Buffer {
  return file === undefined ? session.readStdinBytes() : bytesOfFile(session, '--file', file);
}

/** The fields that the options have for every message. */
function fieldsOf(options: SendOptions): Omit<Fields, 'rawPayload' | 'idempotencyKey'> {
  const { eventType, tag, externalId, orderingKey } = options;
  const { deliverAt, expiresAt, retentionDays } = options;
  return {
    ...(eventType === undefined ? {} : { eventType }),
    ...(tag === undefined ? {} : { tags: tag }),
    ...(externalId === undefined ? {} : { externalId }),
    ...(orderingKey === undefined ? {} : { orderingKey }),
    ...(deliverAt === undefined ? {} : { deliverAt: deliverAt.at }),
    ...(expiresAt === undefined ? {} : { expiresAt: expiresAt.at }),
    ...(retentionDays === undefined ? {} : { retentionDays }),
  };
}

type Fields = Extract<SendManyMessage, { rawPayload: string }>;

async function targetOf(
  session: Session,
  { app, webhook }: SendOptions,
): Promise<{ webhookId: string } | { appId: string }> {
  if (webhook !== undefined) return { webhookId: webhook };
  return { appId: await session.appOrShared(app) };
}

/** Returns the message as it ended; null when a delivery is still pending at the time limit. */
export async function endOf(
  session: Session,
  id: string,
  timeoutMs = WAIT_MS,
): Promise<Message | null> {
  try {
    return await session.api.messages.waitUntilFinal(id, { timeoutMs });
  } catch (error) {
    if (error instanceof TimeoutError) return null;
    throw error;
  }
}

async function sendCount(session: Session, options: ManyOptions, count: number): Promise<void> {
  const rawPayload = await readPayload(session, options);
  const message = { ...fieldsOf(options), ...(await targetOf(session, options)), rawPayload };
  const { key } = options;
  function* items(): Generator<Outgoing<Fields>> {
    for (let number = 1; number <= count; number += 1) {
      yield { number, item: { ...message, idempotencyKey: keyOf(key, number) } };
    }
  }
  await sendMany(session, options, items(), { unit: 'message', total: count }, () => undefined);
}

/** Each message has a key of its own. The same ones again are sent once. */
const keyOf = (key: string, number: number): string => `${key}-${number}`;

async function sendLines(session: Session, options: ManyOptions): Promise<void> {
  const reading = new AbortController();
  const ended = AbortSignal.any([session.world.signal, reading.signal]);
  const source = addAbortSignal(ended, openInput(session, options));
  // Only when a line needs it: lines may name their app themselves.
  let target: ReturnType<typeof targetOf> | undefined;
  async function* items(): AsyncGenerator<Outgoing<Fields>> {
    for await (const line of readLines(source)) {
      const outgoing = outgoingOf(line, options);
      if ('item' in outgoing && !hasTarget(outgoing.item)) {
        target ??= targetOf(session, options);
        Object.assign(outgoing.item, await target);
      }
      yield outgoing;
    }
  }
  await sendMany(session, options, items(), { unit: 'line', total: null }, () => {
    reading.abort();
  });
}

function openInput(session: Session, { file }: SendOptions): Readable {
  if (file === undefined) return session.world.stdin;
  return createReadStream('', { fd: openFile(session, '--file', file) });
}

const hasTarget = ({ appId, webhookId }: Fields): boolean =>
  (appId ?? null) !== null || (webhookId ?? null) !== null;

function outgoingOf(line: Line, options: ManyOptions): Outgoing<Fields> {
  const { number } = line;
  if ('problem' in line) return line;
  const fields = parseObject(line.text);
  if (fields === null) return { number, problem: 'The line is no JSON object' };
  const idempotencyKey = keyOf(options.key, number);
  if (!options.messages) {
    return { number, item: { ...fieldsOf(options), idempotencyKey, rawPayload: line.text } };
  }
  const rawPayload = rawFieldOf(line.text, 'payload');
  if (rawPayload === undefined) return { number, problem: 'The line has no payload' };
  if (!rawPayload.startsWith('{')) return { number, problem: 'The payload is no JSON object' };
  // Without the parsed payload: the text of the line is what is sent.
  const item = { ...fieldsOf(options), idempotencyKey, ...fields, payload: undefined, rawPayload };
  if (typeof item.idempotencyKey === 'string') return { number, item };
  return { number, problem: 'The idempotencyKey of the line is no text' };
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value = JSON.parse(text) as unknown;
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

async function sendMany(
  session: Session,
  options: ManyOptions,
  items: AsyncIterable<Outgoing<Fields>> | Iterable<Outgoing<Fields>>,
  { unit, total }: { unit: 'line' | 'message'; total: number | null },
  stopReading: () => void,
): Promise<void> {
  session.requireCredentials();
  const { output, world, api } = session;
  const { wait, timeout, concurrency, rate } = options;
  const report = new SendReport(output, { unit, total, isWaiting: wait === true });
  const sending = sendAll<Fields, SentMessage>({
    items,
    send: (messages) => sendBatch(api, messages, { maxRetries: RETRIES_OF_MANY }),
    finish: async (sent) =>
      (wait && 'messageId' in sent ? await endOf(session, sent.messageId, timeout) : null) ?? sent,
    bytesOf: ({ rawPayload }) => Buffer.byteLength(rawPayload) + OTHER_BYTES,
    concurrency,
    pacer: new Pacer(rate),
    signal: world.signal,
    onSent: (sent) => {
      if (!('error' in sent && isDryRun(sent.error))) report.add(sent);
    },
    isFatal,
    stopReading,
  });
  const ended = await sending.catch((error: unknown) => {
    // The input, or the pause before a message, was interrupted.
    if (!world.signal.aborted) throw error;
    return null;
  });
  if (ended === null || world.signal.aborted) {
    report.interrupt();
    noteRest(session, options);
    throw new Interrupted();
  }
  if (isDryRun(ended.fatal)) throw new DryRunEnd();
  if (ended.fatal !== null) noteRest(session, options);
  report.finish(ended);
}

function noteRest({ output }: Session, options: ManyOptions): void {
  const again = repeatOptions(options, options.key);
  output.note(`To go on with the same input, without sending twice: ${again}`);
}

/** The same would happen to every other message. */
function isFatal(error: unknown): boolean {
  return (
    error instanceof Interrupted ||
    error instanceof AuthenticationError ||
    error instanceof PermissionError ||
    error instanceof ConnectionError ||
    error instanceof TimeoutError
  );
}
