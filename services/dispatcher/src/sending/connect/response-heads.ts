import type { Socket } from 'node:net';
import {
  createByteCollector,
  type ByteCollector,
} from '@posthorn/platform/memory/byte-collector.ts';

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
