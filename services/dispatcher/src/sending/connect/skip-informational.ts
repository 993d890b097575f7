import type { Socket } from 'node:net';

/** Removes the informational responses (1xx) before each response from the bytes of a connection. */
export interface InformationalSkipper {
  /** Begins the next response. */
  begin: () => void;
  /**
   * Returns what is left of the next bytes, null for nothing yet. Throws TooManyInformationalError, after which nothing
   * else may be called.
   */
  skip: (chunk: Buffer) => Buffer | null;
}

/** The endpoint sends only informational responses. They would keep an attempt busy until its deadline. */
export class TooManyInformationalError extends Error {
  readonly code = 'TOO_MANY_INFORMATIONAL';
  constructor() {
    super('too many informational responses');
  }
}

/** For all informational responses before one response. */
const MAX_RESPONSES = 16;
const MAX_BYTES = 16_384;

/** 101 changes the protocol. It is never asked for, and what follows is no HTTP. */
const INFORMATIONAL = /^HTTP\/1\.[01] 1(?!01)\d\d$/;
const EXAMPLE = 'HTTP/1.1 102';
const END = '\r\n\r\n';
const NOTHING = Buffer.alloc(0);

/**
 * A client must understand informational responses that it did not ask for (RFC 9110, section 15.2). undici destroys the
 * connection on a 100, and takes the connection for closed after another one with `connection: close` or of HTTP/1.0.
 * What a read ends within is held: 11 bytes of a status line, or 3 of the end of a head.
 */
export function createInformationalSkipper(): InformationalSkipper {
  let place: 'status_line' | 'informational' | 'response' = 'response';
  let held: Buffer = NOTHING;
  let responses = 0;
  let skippedBytes = 0;

  /** Returns the bytes behind a number of others, which it counts. */
  function behind(bytes: Buffer, count: number): Buffer {
    skippedBytes += count;
    if (skippedBytes > MAX_BYTES || responses > MAX_RESPONSES)
      throw new TooManyInformationalError();
    return bytes.subarray(count);
  }
  /** Copied, because a slice would keep the whole read alive. */
  function hold(bytes: Buffer): null {
    held = Buffer.from(bytes);
    return null;
  }
  function skip(bytes: Buffer): Buffer | null {
    let rest = bytes;
    while (rest.length > 0) {
      if (place === 'informational') {
        const end = rest.indexOf(END);
        if (end === -1) return hold(behind(rest, Math.max(0, rest.length - END.length + 1)));
        rest = behind(rest, end + END.length);
        place = 'status_line';
      } else {
        rest = behind(rest, lineBreaksOf(rest));
        const begun = rest.toString('latin1', 0, EXAMPLE.length);
        if (!INFORMATIONAL.test(begun + EXAMPLE.slice(begun.length))) {
          place = 'response';
          return rest;
        }
        if (begun.length < EXAMPLE.length) return hold(rest);
        responses += 1;
        place = 'informational';
      }
    }
    return null;
  }
  return {
    begin() {
      place = 'status_line';
      held = NOTHING;
      [responses, skippedBytes] = [0, 0];
    },
    skip(chunk) {
      if (place === 'response') return chunk;
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      held = NOTHING;
      return skip(bytes);
    },
  };
}

/** Removes them from what a new connection receives for its one request, before anybody reads it. */
export function skipInformationalOf(socket: Socket): void {
  const push = socket.push.bind(socket);
  const informational = createInformationalSkipper();
  informational.begin();
  socket.push = (chunk: Buffer | null): boolean => {
    if (chunk === null) return push(null);
    try {
      const rest = informational.skip(chunk);
      return rest === null || push(rest);
    } catch (error) {
      socket.destroy(error as Error);
      return false;
    }
  };
}

const CR = 0x0d;
const LF = 0x0a;

/** Some servers send an empty line before a response; llhttp ignores it too. */
function lineBreaksOf(bytes: Buffer): number {
  const length = bytes.findIndex((byte) => byte !== CR && byte !== LF);
  return length === -1 ? bytes.length : length;
}
