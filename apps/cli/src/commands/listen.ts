import { InvalidArgumentError, type Command } from '@commander-js/extra-typings';
import { PermissionError, type Posthorn, ValidationError } from '@posthorn/client';
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { CommandFailure, UsageFailure } from '../failures.ts';
import {
  holderOfThisProcess,
  isRunning,
  RENEW_EVERY_MS,
  secretOf,
  WebhookLease,
} from '../listen/lease.ts';
import { hasTerminal, resendTo, watchKeys } from '../listen/keys.ts';
import { type Delivered, startListenReceiver } from '../listen/receiver.ts';
import { type HeaderValue, parseHeader } from '../options.ts';
import { clockOf, escapeControls } from '../output.ts';
import { isLoopback } from '../profiles.ts';
import type { Session } from '../session.ts';

interface ListenOptions {
  app?: string | undefined;
  eventTypes?: string | undefined;
  header?: HeaderValue[] | undefined;
  forward: boolean;
  skipVerify?: true | undefined;
  printSecret?: true | undefined;
  receiverUrl?: string | undefined;
  receiverPort?: number | undefined;
}

const HELP = `
Examples:
  posthorn listen 3000
  posthorn listen 3000/webhooks --event-types order.paid,order.shipped
  posthorn listen https://localhost:7001/webhooks --skip-verify
  posthorn listen 3000 --receiver-url https://tunnel.example.com --receiver-port 4242

Each delivery is verified, then forwarded with its body and headers as they are. Your receiver
decides: Posthorn gets its status, and retries what it refuses. The secret by which it verifies is
the same at each start with the same API key.

On a terminal, r resends the last event, also one that Posthorn would retry later, and s sends a sample.

A gateway elsewhere cannot reach this machine: start a tunnel from a public address to a port here,
and name both.`;

/** `listen`: a temporary webhook whose deliveries go to a port of this machine. */
export function addListenCommand(program: Command, session: Session): void {
  program
    .command('listen')
    .argument('[target]', 'port of this machine, with a path or not, or a URL')
    .description('forward deliveries to this machine until Ctrl-C, by a temporary webhook')
    .option('--app <id>', 'app whose messages are forwarded (default: uid:cli-listen)')
    .option('--event-types <types>', 'only these event types, with commas between them')
    .option(
      '--header <name: value>',
      'header that is set for your receiver (repeatable)',
      parseHeader,
    )
    .option('--no-forward', 'only print deliveries, and answer 204')
    .option('--skip-verify', 'take whatever certificate your receiver has')
    .option('--print-secret', 'print the secret that verifies the deliveries')
    .option('--receiver-url <url>', 'public address of a tunnel to --receiver-port')
    .option('--receiver-port <port>', 'port of this machine to which the tunnel leads', parsePort)
    .addHelpText('after', HELP)
    .action((target, options) => session.watch(() => listen(session, target, options)));
}

async function listen(
  session: Session,
  targetText: string | undefined,
  options: ListenOptions,
): Promise<void> {
  // Wrong usage is reported before a missing key, at which `credentials` throws.
  const [target, extraHeaders] = [targetOf(targetText, options.forward), headersOf(options)];
  const { output, credentials, world } = session;
  const receiverUrl = receiverUrlOf(credentials.url, options);
  // Ctrl-C ends the waiting, not the deletion of the webhook.
  const api = session.connect(credentials, { isInterruptible: false });
  const printer = new Printer(session, target);
  const receiver = await startListenReceiver({
    target,
    verifiesTarget: options.skipVerify !== true,
    extraHeaders,
    port: options.receiverPort ?? 0,
    secrets: () => lease.secrets,
    nowMs: () => lease.nowMs(),
    eventTypeOf: createEventTypes(api),
    onDelivered: (delivered) => {
      printer.delivered(delivered);
    },
    onRefused: (reason) => {
      printer.refused(reason);
    },
  });
  const lease = new WebhookLease({
    api,
    holder: holderOfThisProcess(),
    url: receiverUrl ?? `http://127.0.0.1:${receiver.port}/`,
    secret: secretOf(credentials.apiKey),
    eventTypes: (options.eventTypes ?? '').split(',').filter(Boolean),
    findApp: () => session.appOrShared(options.app),
    isRunning,
    signal: world.signal,
    note: (text) => {
      output.note(text);
    },
  });
  try {
    await lease.open().catch((error: unknown) => {
      throw receiverUrl === null ? explainRefusal(error) : error;
    });
    if (!world.signal.aborted) printer.ready(lease, options.printSecret === true);
    receiver.report();
    await renewUntilEnd(session, { api, lease, printer });
  } finally {
    await lease.close();
    await receiver.close();
  }
}

interface Keyed {
  api: Posthorn;
  lease: WebhookLease;
  printer: Printer;
}

/** Begins to act on the keys of the terminal. */
function startKeys({ world, output }: Session, { api, lease, printer }: Keyed): () => void {
  const note = (text: string): void => {
    output.note(text);
  };
  note('Press r to resend the last event, s to send a sample.');
  const resend = async (): Promise<void> => {
    const messageId = printer.lastMessageId;
    if (messageId === null) {
      note('No event has arrived yet: press s to send a sample.');
      return;
    }
    note(`Resending ${messageId} …`);
    await resendTo(api, { webhookId: lease.webhookId, messageId });
  };
  const sendSample = async (): Promise<void> => {
    note('Sending a sample …');
    await api.webhooks.test(lease.webhookId);
  };
  const interrupt = (): void => {
    process.kill(process.pid, 'SIGINT');
  };
  return watchKeys({ input: world.stdin, actions: { r: resend, s: sendSample }, interrupt, note });
}

/** The failure that says what to do when Posthorn may not deliver to its own machine. */
export function explainRefusal(error: unknown): unknown {
  const isUrlRefused =
    error instanceof ValidationError && error.errors?.some(({ path }) => path === 'url');
  if (!isUrlRefused) return error;
  return new CommandFailure(
    `${error.message}. Posthorn delivers to its own machine with EGRESS_ALLOW_LOOPBACK=true and ` +
      'EGRESS_ALLOW_HTTP=true, which npm start sets. From elsewhere, it needs a tunnel: see --receiver-url',
  );
}

async function renewUntilEnd(session: Session, keyed: Keyed): Promise<void> {
  const { signal } = session.world;
  const releaseKeys = session.isTerminal && hasTerminal() ? startKeys(session, keyed) : null;
  try {
    while (!signal.aborted) {
      await wait(RENEW_EVERY_MS, undefined, { signal });
      await keyed.lease.renew();
    }
  } finally {
    releaseKeys?.();
  }
}

/** Reads `3000`, `3000/path`, `host:3000/path` or a URL. Null when nothing is forwarded. */
export function targetOf(text: string | undefined, isForwarded: boolean): URL | null {
  if (!isForwarded) return null;
  if (text === undefined) {
    throw new UsageFailure('Name a port or a URL to forward to, such as posthorn listen 3000');
  }
  const url = /^\d+(\/|$)/.test(text)
    ? `http://localhost:${text}`
    : /^https?:\/\//i.test(text)
      ? text
      : `http://${text}`;
  if (!URL.canParse(url)) throw new UsageFailure(`${text} is neither a port nor a URL`);
  const target = new URL(url);
  if (target.username || target.password) {
    throw new UsageFailure("Use --header 'Authorization: …' in place of a password in the URL");
  }
  return target;
}

function headersOf({ header = [] }: ListenOptions): (readonly [name: string, value: string])[] {
  return header.map(({ key, value }) => {
    try {
      validateHeaderName(key);
      validateHeaderValue(key, value);
    } catch {
      throw new UsageFailure(`--header ${key} has characters that no header has`);
    }
    return [key, value];
  });
}

/** The public address of the webhook; null when Posthorn is on this machine and reaches it by itself. */
export function receiverUrlOf(
  baseUrl: string,
  { receiverUrl, receiverPort }: Pick<ListenOptions, 'receiverUrl' | 'receiverPort'>,
): string | null {
  if (receiverUrl !== undefined && receiverPort === undefined) {
    throw new UsageFailure('--receiver-url needs --receiver-port, to which your tunnel leads');
  }
  if (receiverUrl === undefined && !isLoopback(new URL(baseUrl).hostname)) {
    throw new UsageFailure(
      `${baseUrl} cannot reach this machine. Start a tunnel from a public address to a port here, ` +
        'and name both with --receiver-url and --receiver-port',
    );
  }
  return receiverUrl ?? null;
}

function parsePort(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port;
  throw new InvalidArgumentError('It is not a port.');
}

/** Lookups at once. More messages than that in a moment are printed without their types. */
const MAX_LOOKUPS = 32;

/**
 * Returns a function that finds the event type of a message; null when it cannot be known. The first refusal of the key
 * is the last question.
 */
function createEventTypes(api: Posthorn): (messageId: string) => Promise<string | null> {
  let running = 0;
  let isForbidden = false;
  return async (messageId) => {
    if (isForbidden || running >= MAX_LOOKUPS) return null;
    running += 1;
    try {
      const message = await api.messages.get(messageId, { timeoutMs: 2_000, maxRetries: 0 });
      return message.eventType;
    } catch (error) {
      isForbidden ||= error instanceof PermissionError;
      return null;
    } finally {
      running -= 1;
    }
  };
}

/** Prints what happens: lines for people, or NDJSON. */
class Printer {
  readonly #session: Session;
  readonly #target: URL | null;
  #isDown = false;
  #isReady = false;
  /** Of the delivery that was printed last. */
  lastMessageId: string | null = null;

  constructor(session: Session, target: URL | null) {
    this.#session = session;
    this.#target = target;
  }

  ready({ appId, webhookId, secrets }: WebhookLease, isSecretPrinted: boolean): void {
    const { output } = this.#session;
    this.#isReady = true;
    const [secret] = secrets;
    const forwardTo = this.#target?.href ?? null;
    const data = { appId, webhookId, forwardTo, ...(isSecretPrinted && { secret }) };
    output.event('ready', data, isSecretPrinted ? `secret: ${secret ?? ''}` : null);
    output.note(
      `ready: messages of ${appId} ${forwardTo ? `go to ${forwardTo}` : 'are printed'}. Ctrl-C ends it.`,
    );
  }

  delivered(delivered: Delivered): void {
    const { output } = this.#session;
    const { arrivedAtMs, messageId, eventType, status, durationMs, error } = delivered;
    this.lastMessageId = messageId;
    this.#noteTarget(error, status);
    const arrivedAt = new Date(arrivedAtMs).toISOString();
    const data = { messageId, eventType, arrivedAt, status, durationMs, error };
    const isGood = status !== null && status >= 200 && status < 300;
    const { green, red, dim } = output.colours;
    const result = (isGood ? green : red)(String(status ?? '---'));
    output.event(
      'delivery',
      data,
      `${dim(clockOf(arrivedAtMs))}  ${result}  ${String(durationMs).padStart(5)} ms  ` +
        `${escapeControls(eventType ?? '-')}  ${dim(escapeControls(messageId))}`,
    );
  }

  refused(reason: string): void {
    const { output } = this.#session;
    // The stream begins with `ready`.
    if (!this.#isReady) return;
    output.event('refused', { reason }, null);
    output.note(`A request was refused, and not forwarded: ${reason}.`);
  }

  /** A target that is down is noted once, until it answers again. */
  #noteTarget(error: string | null, status: number | null): void {
    const isDown = error !== null && status !== null;
    if (isDown && !this.#isDown) {
      const href = this.#target?.href ?? '';
      this.#session.output.note(
        `${href} does not answer (${error}). Posthorn gets 502 and retries.`,
      );
    }
    this.#isDown = isDown;
  }
}
