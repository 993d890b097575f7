import type { Socket } from 'node:net';
import { monotonicClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { createResponseHeads } from './response-heads.ts';

const MAX_READ_BYTES = 4_096;

/** The endpoint ended a kept connection, and sent no byte of an answer to the request on it. */
class EndedUnansweredError extends Error {
  readonly code = 'ENDED_UNANSWERED';
  constructor() {
    super('the endpoint ended the kept connection without an answer');
  }
}

/** The framing of a response body, its chunk sizes, their extensions and its trailers, exceeds a limit. */
class FramingTooLargeError extends Error {
  readonly code = 'RESPONSE_FRAMING_TOO_LARGE';
  constructor() {
    super('the framing of the response body is too large');
  }
}

/** A body with its framing: 64 KiB of content in chunks of four bytes, each with a size of eight digits. */
const MAX_BODY_BYTES = 262_144;
/** Between two parts of the content, and after the last one. The client makes two objects of each trailer. */
const MAX_FRAMING_BYTES = 2_048;

/** Counts the bytes that a connection receives after the head of a response. */
interface BodyBytes {
  /** Begins the next response. */
  begin: () => void;
  /** Called for each read, with 0 for one in the head. Throws FramingTooLargeError once a limit was exceeded. */
  add: (bytes: number) => void;
  /** Notes that the client found content in the bytes of the last read. */
  noteContent: () => void;
}

/** Of the connection that was read last. */
let lastRead: BodyBytes | null = null;

/** Notes that the client found content in what it has just read: it parses each read before the next. */
export function noteContent(): void {
  lastRead?.noteContent();
}

function createBodyBytes(): BodyBytes {
  let all = 0;
  let withoutContent = 0;
  const body: BodyBytes = {
    begin() {
      [all, withoutContent] = [0, 0];
    },
    add(bytes) {
      lastRead = body;
      if (all > MAX_BODY_BYTES || withoutContent >= MAX_FRAMING_BYTES) {
        throw new FramingTooLargeError();
      }
      all += bytes;
      withoutContent += bytes;
    },
    noteContent() {
      withoutContent = 0;
    },
  };
  return body;
}

/**
 * An endpoint that ends the connection later than this has worked on the request: most likely a load balancer before it
 * has given up. It learns of a closed connection within a round trip.
 */
const REPEAT_WITHIN_MS = 2_000;

const unanswered = new WeakSet<object>();
const idleResets = new WeakSet<object>();
const RESETS: readonly (string | undefined)[] = ['ECONNRESET', 'EPIPE'];

/**
 * Whether a request failed because the endpoint ended the connection that was kept from an earlier request, before any
 * byte of an answer and within 2 s. Endpoints close idle connections at any time, also at the moment when the next
 * request is sent.
 */
export function isUnansweredReuse(error: unknown): boolean {
  return typeof error === 'object' && error !== null && unanswered.has(error);
}

/**
 * Whether a connection was reset that was kept and carried no request. undici fails a request with it that it was about
 * to send on the connection; it sends such a request on another one when the connection ends without a reset.
 */
export function isIdleReset(error: unknown): boolean {
  return typeof error === 'object' && error !== null && idleResets.has(error);
}

/**
 * Prepares an open connection for the HTTP client:
 * - It returns received data in pieces of 4 KiB at most, and none once it is destroyed. The client parses all data of
 *   one read, even after a limit is exceeded: 64 KiB of tiny headers took 100 ms of CPU for one attempt, and bodies were
 *   read up to 64 KiB beyond their limit.
 * - It returns the head of a response at once, and leaves out informational responses.
 * - It bounds a response body with its framing: chunk extensions are skipped without end by the client, and trailers
 *   are bounded in bytes only, of which 31,000 tiny ones held 7 MB. The status has decided the outcome by then.
 * - It marks the error of a request that was not answered on a kept connection (`isUnansweredReuse`), and that of a kept
 *   connection without a request (`isIdleReset`).
 */
export function prepareSocket(socket: Socket, monotonicMs = monotonicClockMs): void {
  const read = socket.read.bind(socket);
  const write = socket.write.bind(socket);
  const heads = createResponseHeads();
  let requests = 0;
  let isAnswered = true;
  let begunAtMs = 0;
  const body = createBodyBytes();

  const readOnce = (size: number | undefined): Buffer | null => {
    if (socket.destroyed) return null;
    const bytes = size ?? (Math.min(socket.readableLength, MAX_READ_BYTES) || undefined);
    return read(bytes) as Buffer | null;
  };
  socket.read = (size?: number): unknown => {
    for (let chunk = readOnce(size); chunk; chunk = readOnce(size)) {
      isAnswered = true;
      try {
        body.add(heads.isInHead() ? 0 : chunk.length);
        const passed = heads.pass(chunk);
        if (passed) return passed;
      } catch (error) {
        socket.destroy(error as Error);
      }
    }
    return null;
  };

  // One request is on a connection at a time: the first write after an answer begins the next one.
  socket.write = ((...chunk: Parameters<typeof write>) => {
    if (isAnswered) {
      requests += 1;
      isAnswered = false;
      begunAtMs = monotonicMs();
      heads.begin();
      body.begin();
    }
    return write(...chunk);
  }) as typeof write;

  const isUnanswered = (): boolean =>
    requests > 1 &&
    !isAnswered &&
    socket.readableLength === 0 &&
    monotonicMs() - begunAtMs <= REPEAT_WITHIN_MS;
  socket.once('end', () => {
    if (isUnanswered()) socket.destroy(new EndedUnansweredError());
  });
  socket.once('error', (error: NodeJS.ErrnoException) => {
    const isEnd = error instanceof EndedUnansweredError || RESETS.includes(error.code);
    if (isEnd && isUnanswered()) unanswered.add(error);
    if (isEnd && requests > 0 && isAnswered) idleResets.add(error);
  });
}
