import { verify, VerifyError, type VerifyReason } from '@posthorn/verify';
import {
  Agent as HttpAgent,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';

/** A payload has at most 256 KiB. */
const MAX_BODY_BYTES = 1_048_576;
/** Bodies are in memory while they are forwarded: at most 64 MiB. */
const MAX_FORWARDING = 64;
/** Posthorn makes at most 1,000 attempts of a webhook at once. The others wait, with their bodies unread. */
const MAX_CONNECTIONS = 1_200;
/** Posthorn itself waits 15 s unless its operator has set more, and then closes the connection. */
const FORWARD_TIMEOUT_MS = 60_000;
/** Lines that wait for the one before them. One that takes a minute must not hold back thousands. */
const MAX_HELD_BACK = 1_000;

/** What became of a delivery. */
export interface Outcome {
  /** The status that Posthorn got; null when it got no whole answer. */
  status: number | null;
  /** From its arrival to the end of the answer. */
  durationMs: number;
  /** Why the target did not answer; null when it did. */
  error: string | null;
}

export interface Delivered extends Outcome {
  messageId: string;
  /** Null when the message has none, and when it is not known. */
  eventType: string | null;
  arrivedAtMs: number;
}

type Answered = Pick<Outcome, 'status' | 'error'>;

export interface ReceiverOptions {
  /** Null to answer 204 to everything. */
  target: URL | null;
  /** Whether an https target needs a certificate of a known authority. */
  verifiesTarget: boolean;
  /** Set in place of those of the delivery. */
  extraHeaders: readonly (readonly [name: string, value: string])[];
  /** 0 for a free one. */
  port: number;
  /** The present ones, by which deliveries are verified. */
  secrets: () => readonly string[];
  /** The clock of Posthorn, which has signed the timestamps. */
  nowMs: () => number;
  /** Deliveries do not have it. It is looked up while the target works. */
  eventTypeOf: (messageId: string) => Promise<string | null>;
  /** Called in the order of arrival. */
  onDelivered: (delivered: Delivered) => void;
  /** A request that is not from Posthorn, or whose timestamp is too far away. It was not forwarded. */
  onRefused: (reason: VerifyReason) => void;
}

export interface ListenReceiver {
  port: number;
  /** Begins to call `onDelivered`, with what has arrived before too. */
  report: () => void;
  /** Ends what is under way. Resolves when `onDelivered` was called with everything that was answered. */
  close: () => Promise<void>;
}

/** Starts an endpoint on this machine that verifies each delivery, forwards it and returns the answer of the target. */
export async function startListenReceiver(options: ReceiverOptions): Promise<ListenReceiver> {
  const slots = new Slots(MAX_FORWARDING);
  const order = new ArrivalOrder<Delivered>(options.onDelivered, MAX_HELD_BACK);
  // Before everything else, until `report`.
  const report = order.begin();
  const running = new Set<Promise<void>>();
  const server = createServer((request, response) => {
    const received = receive({ request, response, slots, order, options });
    running.add(received);
    void received.then(() => running.delete(received));
  });
  server.requestTimeout = FORWARD_TIMEOUT_MS;
  server.maxConnections = MAX_CONNECTIONS;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    report: () => {
      report(null);
    },
    async close() {
      const closed = new Promise<void>((resolve) => {
        server.close(() => {
          resolve();
        });
      });
      server.closeAllConnections();
      await closed;
      // Posthorn has the answers of these, and sends none of them again: their types are still looked up, for 2 s at most.
      await Promise.all(running);
    },
  };
}

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  slots: Slots;
  order: ArrivalOrder<Delivered>;
  options: ReceiverOptions;
}

/** Never rejects: the requests of others must not end the command. */
async function receive({ request, response, slots, order, options }: Exchange): Promise<void> {
  const finish = order.begin();
  const startedMs = performance.now();
  const arrivedAtMs = Date.now();
  let delivered: Delivered | null = null;
  try {
    const handled = await slots.run(() => handle(request, response, options));
    const durationMs = Math.round(performance.now() - startedMs);
    if (handled) {
      const { messageId, outcome, eventType } = handled;
      delivered = { messageId, eventType: await eventType, arrivedAtMs, ...outcome, durationMs };
    }
  } catch {
    // The connection broke off.
    response.destroy();
  }
  finish(delivered);
}

interface Handled {
  messageId: string;
  eventType: Promise<string | null>;
  outcome: Answered;
}

/** Returns null for a request that is refused. */
async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  options: ReceiverOptions,
): Promise<Handled | null> {
  const { target, verifiesTarget, extraHeaders } = options;
  const verified = await readVerified(request, options);
  if ('status' in verified) {
    answer(response, verified.status, verified.message);
    return null;
  }
  const { messageId, body } = verified;
  const eventType = options.eventTypeOf(messageId);
  const outcome = target
    ? await forward({ target, verifiesTarget, request, response, body, extraHeaders })
    : answer(response, 204);
  return { messageId, eventType, outcome };
}

/** Reads the request, and verifies that it is from Posthorn; otherwise returns the answer to it. */
async function readVerified(
  request: IncomingMessage,
  { secrets, nowMs, onRefused }: ReceiverOptions,
): Promise<{ messageId: string; body: Buffer } | { status: number; message: string }> {
  if (request.method !== 'POST') return { status: 405, message: 'Posthorn sends POST requests' };
  const body = await readBody(request);
  if (body === null) {
    onRefused('body_too_large');
    return { status: 413, message: 'The body is too large' };
  }
  try {
    const headers = request.headers as Record<string, string>;
    const { id } = await verify({ body, headers, secrets: secrets(), nowMs });
    return { messageId: id, body };
  } catch (error) {
    if (!(error instanceof VerifyError)) throw error;
    onRefused(error.reason);
    return { status: 401, message: error.message };
  }
}

function answer(response: ServerResponse, status: number, text = ''): Answered {
  response.writeHead(status, {
    ...(text !== '' && { 'content-type': 'text/plain; charset=utf-8' }),
    // What is left of the body is not read.
    ...(!response.req.complete && { connection: 'close' }),
  });
  response.end(text);
  return { status, error: null };
}

/** Returns null when the body is too large. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // The connection stays for the answer.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_BODY_BYTES) return null;
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

interface Forwarding {
  target: URL;
  verifiesTarget: boolean;
  request: IncomingMessage;
  response: ServerResponse;
  body: Buffer;
  extraHeaders: ReceiverOptions['extraHeaders'];
}

const GAVE_UP = 'Posthorn waited no longer';

/** Sends the delivery to the target, and its answer back: status, headers and body as they are. */
async function forward(forwarding: Forwarding): Promise<Answered> {
  const { response } = forwarding;
  const controller = new AbortController();
  const giveUp = (): void => {
    controller.abort(GAVE_UP);
  };
  const timer = setTimeout(() => {
    controller.abort(`no answer within ${FORWARD_TIMEOUT_MS / 1_000} s`);
  }, FORWARD_TIMEOUT_MS);
  // Posthorn has closed the connection.
  response.once('close', giveUp);
  try {
    const got = await request(forwarding, controller.signal);
    const status = got.statusCode ?? 502;
    response.writeHead(status, got.statusMessage, endToEnd(got.rawHeaders, got.headers.connection));
    await pipeline(got, response);
    return { status, error: null };
  } catch (error) {
    const reason = reasonOf(error, controller.signal);
    if (response.headersSent || reason === GAVE_UP) {
      response.destroy();
      return { status: null, error: reason };
    }
    answer(response, 502, `posthorn listen: ${reason}`);
    return { status: 502, error: reason };
  } finally {
    clearTimeout(timer);
    response.off('close', giveUp);
    // Ends the request to the target, when its answer is not wanted any more.
    giveUp();
  }
}

/** A connection for each: on a kept one, a target that restarts would fail a delivery. */
const HTTP = new HttpAgent({ keepAlive: false });
const HTTPS = new HttpsAgent({ keepAlive: false });
const UNVERIFIED_HTTPS = new HttpsAgent({ keepAlive: false, rejectUnauthorized: false });

function request(
  { target, verifiesTarget, request: incoming, body, extraHeaders }: Forwarding,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const isHttps = target.protocol === 'https:';
  const https = verifiesTarget ? HTTPS : UNVERIFIED_HTTPS;
  const set = [['Host', target.host], ...extraHeaders, ['Content-Length', String(body.length)]];
  const replaced = new Set(['expect', ...set.map(([name = '']) => name.toLowerCase())]);
  const kept = endToEnd(incoming.rawHeaders, incoming.headers.connection, replaced);
  return new Promise((resolve, reject) => {
    const outgoing = (isHttps ? httpsRequest : httpRequest)(target, {
      method: 'POST',
      headers: [...set.flat(), ...kept],
      signal,
      agent: isHttps ? https : HTTP,
    });
    outgoing.once('response', resolve).on('error', reject).end(body);
  });
}

/** Of one connection (RFC 9110, 7.6.1), and the framing. */
const HOP_BY_HOP = /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/;

/** Returns names and values in turns, without those of the connection and the replaced ones. */
export function endToEnd(
  rawHeaders: readonly string[],
  connection: string | undefined,
  replaced: ReadonlySet<string> = new Set(),
): string[] {
  const named = (connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  return rawHeaders.filter((_, index) => {
    const name = (rawHeaders[index - (index % 2)] ?? '').toLowerCase();
    return !HOP_BY_HOP.test(name) && !named.includes(name) && !replaced.has(name);
  });
}

/** The codes of a certificate that is not accepted, such as `DEPTH_ZERO_SELF_SIGNED_CERT`. */
const CERTIFICATE = /CERT|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER/;

function reasonOf(error: unknown, { aborted, reason }: AbortSignal): string {
  const { code, message } = error as NodeJS.ErrnoException;
  // What the target does has codes of its own, such as ECONNRESET.
  const isAborted = code === 'ABORT_ERR' || code === 'ERR_STREAM_PREMATURE_CLOSE';
  if (isAborted) return aborted ? String(reason) : GAVE_UP;
  if (code === 'ECONNREFUSED') return 'connection refused';
  // Behind a semicolon, Node names an option of its own.
  if (CERTIFICATE.test(code ?? '')) return `${message.replace(/;.*/s, '')}: see --skip-verify`;
  return message || (code ?? 'unknown');
}

/** Runs at most `free` works at once; others wait, in the order in which they came. */
class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(free: number) {
    this.#free = free;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}

interface Entry<T> {
  hasEnded: boolean;
  result: T | null;
}

/** Passes results on in the order in which they were begun, whatever the order is in which they end. */
export class ArrivalOrder<T> {
  readonly #pass: (result: T) => void;
  readonly #maxHeldBack: number;
  /** In the order of arrival. */
  #begun: Entry<T>[] = [];
  #heldBack = 0;

  /** When more than `maxHeldBack` results wait for one before them, they are passed on without it. */
  constructor(pass: (result: T) => void, maxHeldBack: number) {
    this.#pass = pass;
    this.#maxHeldBack = maxHeldBack;
  }

  /** Returns the function for its end. Null passes nothing on. */
  begin(): (result: T | null) => void {
    const entry: Entry<T> = { hasEnded: false, result: null };
    this.#begun.push(entry);
    return (result) => {
      entry.hasEnded = true;
      entry.result = result;
      this.#heldBack += 1;
      for (const each of this.#takeReady()) if (each.result !== null) this.#pass(each.result);
    };
  }

  #takeReady(): Entry<T>[] {
    const firstOpen = this.#begun.findIndex(({ hasEnded }) => !hasEnded);
    let ready: Entry<T>[];
    if (firstOpen < 0) ready = this.#begun.splice(0);
    else if (this.#heldBack <= this.#maxHeldBack) ready = this.#begun.splice(0, firstOpen);
    else {
      ready = this.#begun.filter(({ hasEnded }) => hasEnded);
      this.#begun = this.#begun.filter(({ hasEnded }) => !hasEnded);
    }
    this.#heldBack -= ready.length;
    return ready;
  }
}
