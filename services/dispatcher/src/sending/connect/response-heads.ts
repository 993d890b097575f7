import {
  type ByteCollector,
  createByteCollector,
} from '@posthorn/platform/memory/byte-collector.ts';
import { monotonicClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Socket } from 'node:net';

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

/** Between two reads behind a failed write. What has arrived is there to be read at once, and its end behind it. */
const NEXT_READ_MS = 1_000;

/**
 * Holds the error of a write back until everything that has arrived is read: an endpoint that answers before it has read
 * a large body, and closes, resets the connection behind its answer. The error would end the socket with the answer in
 * it, which decides (docs/contract.md C10.2). The end of the connection, the deadline of the attempt, or a second
 * without a read ends the wait.
 */
function readBeforeWriteError(socket: Socket): void {
  const write = socket._write.bind(socket);
  const writeAll = socket._writev?.bind(socket);
  // The stream has at most one write under way.
  let onWritten: WriteCallback = () => undefined;
  const settle: WriteCallback = (error) => {
    if (!error) {
      onWritten(error);
      return;
    }
    const timer = setTimeout(() => {
      onWritten(error);
    }, NEXT_READ_MS);
    socket
      .on('readable', () => timer.refresh())
      .once('close', () => {
        clearTimeout(timer);
      });
  };
  socket._write = (chunk, encoding, callback) => {
    onWritten = callback;
    write(chunk, encoding, settle);
  };
  if (!writeAll) return;
  socket._writev = (chunks, callback) => {
    onWritten = callback;
    writeAll(chunks, settle);
  };
}

type WriteCallback = Parameters<Socket['_write']>[2];

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
 * - It reads what has arrived before it reports the error of a write (`readBeforeWriteError`).
 */
export function prepareSocket(socket: Socket, monotonicMs = monotonicClockMs): void {
  readBeforeWriteError(socket);
  const read = socket.read.bind(socket);
  const write = socket.write.bind(socket);
  const heads = createResponseHeads();
  let isAnswered = true;
  let [requests, begunAtMs] = [0, 0];
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

/** Passes on what a connection receives: the head of each response at once, and without informational ones (1xx). */
export interface ResponseHeads {
  /** Begins the next response. */
  begin: () => void;
  /** False once the head of the response has been passed on. */
  isInHead: () => boolean;
  /**
   * Returns what may be read of the next bytes, null for nothing yet. Throws HeadTooLargeError, after which nothing else
   * may be called.
   */
  pass: (chunk: Buffer) => Buffer | null;
}

/** A response has too many bytes or lines before its body, or too many informational responses before it. */
export class HeadTooLargeError extends Error {
  readonly code = 'RESPONSE_HEAD_TOO_LARGE';
  constructor() {
    super('the head of the response is too large');
  }
}

/** For all heads before one body, informational ones included (docs/contract.md C9.9). */
export const MAX_HEAD_BYTES = 65_536;
/** The parser makes two objects of each header: 60 KiB of tiny ones would take 6 MB and up to 30 ms. */
const MAX_LINES = 256;
const MAX_INFORMATIONAL = 16;

const BEGIN = /^HTTP\/1\.[01] $/;
const BEGIN_EXAMPLE = 'HTTP/1.1 ';
/** 101 changes the protocol. It is never asked for, and what follows is no HTTP. */
const INFORMATIONAL = /^HTTP\/1\.[01] 1(?!01)\d\d/;
const END = '\r\n\r\n';

/**
 * A client must understand informational responses that it did not ask for (RFC 9110, section 15.2). undici destroys the
 * connection on a 100, and takes the connection for closed after another one with `connection: close` or of HTTP/1.0.
 *
 * A head that arrives in many reads is collected in one buffer that doubles: undici copies a header again with each read
 * that continues it, which takes seconds of CPU for 64 KiB in reads of one byte.
 */
export function createResponseHeads(): ResponseHeads {
  let held: ByteCollector | null = null;
  let isInHead = false;
  let informational = 0;
  let spentBytes = 0;

  function spend(bytes: Buffer, count: number): Buffer {
    spentBytes += count;
    return bytes.subarray(count);
  }
  /** Keeps the bytes until the next read. Those of earlier reads are in the collector already. */
  function hold(bytes: Buffer): null {
    if (spentBytes + bytes.length > MAX_HEAD_BYTES) throw new HeadTooLargeError();
    if (held?.bytes().length === bytes.length) return null;
    held = createByteCollector({ maxBytes: Infinity });
    held.add(bytes);
    return null;
  }
  function release(bytes: Buffer): Buffer {
    [isInHead, held] = [false, null];
    return bytes;
  }
  function pass(received: Buffer, newFrom: number): Buffer | null {
    let bytes = received;
    let searchFrom = Math.max(0, newFrom - END.length + 1);
    for (;;) {
      if (searchFrom === 0) bytes = spend(bytes, lineBreaksOf(bytes));
      if (!mayBeHead(bytes)) return release(bytes);
      const end = endOf(bytes, searchFrom);
      if (end === -1) return hold(bytes);
      if (hasTooManyLines(bytes, end)) throw new HeadTooLargeError();
      if (end === bytes.length || !isInformational(bytes)) return release(bytes);
      informational += 1;
      if (informational > MAX_INFORMATIONAL) throw new HeadTooLargeError();
      bytes = spend(bytes, end + END.length);
      searchFrom = 0;
    }
  }
  return {
    begin() {
      [isInHead, informational, spentBytes, held] = [true, 0, 0, null];
    },
    isInHead: () => isInHead,
    pass(chunk) {
      if (!isInHead) return chunk;
      if (!held) return pass(chunk, 0);
      const newFrom = held.bytes().length;
      held.add(chunk);
      return pass(held.bytes(), newFrom);
    },
  };
}

/** Whether the bytes are the head of a response as far as they go. The HTTP client refuses everything else. */
function mayBeHead(bytes: Buffer): boolean {
  const begun = bytes.toString('latin1', 0, BEGIN_EXAMPLE.length);
  return BEGIN.test(begun + BEGIN_EXAMPLE.slice(begun.length));
}

const CR = 0x0d;
const LF = 0x0a;

function hasTooManyLines(bytes: Buffer, end: number): boolean {
  let lines = 0;
  for (let at = bytes.indexOf(LF); at !== -1 && at < end; at = bytes.indexOf(LF, at + 1)) {
    lines += 1;
    if (lines > MAX_LINES) return true;
  }
  return false;
}

/**
 * Returns where the head ends, -1 for not yet. Its lines end with CR and LF. A head with an LF alone may have no other
 * end, so all bytes are passed on to the HTTP client, which refuses it.
 */
function endOf(bytes: Buffer, from: number): number {
  const end = bytes.indexOf(END, from);
  return end === -1 && hasBareLineFeed(bytes, from) ? bytes.length : end;
}

function hasBareLineFeed(bytes: Buffer, from: number): boolean {
  for (let at = bytes.indexOf(LF, from); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at - 1] !== CR) return true;
  }
  return false;
}

const isInformational = (bytes: Buffer): boolean =>
  INFORMATIONAL.test(bytes.toString('latin1', 0, 12));

/** Some servers send an empty line before a response; llhttp ignores it too. */
function lineBreaksOf(bytes: Buffer): number {
  const length = bytes.findIndex((byte) => byte !== CR && byte !== LF);
  return length === -1 ? bytes.length : length;
}

/** Passes the heads of what a new connection receives for its one request, before anybody reads it. */
export function passHeadsOf(socket: Socket): void {
  const push = socket.push.bind(socket);
  const heads = createResponseHeads();
  heads.begin();
  socket.push = (chunk: Buffer | null): boolean => {
    if (chunk === null) return push(null);
    try {
      const passed = heads.pass(chunk);
      return passed === null || push(passed);
    } catch (error) {
      socket.destroy(error as Error);
      return false;
    }
  };
}
