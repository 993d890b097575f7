import { MAX_BODY_BYTES } from '@posthorn/domain/message/message.ts';
import {
  createByteCollector,
  type ByteCollector,
} from '@posthorn/platform/memory/byte-collector.ts';
import type { Request, RequestHandler, Response } from 'express';
import { ApiError, overloaded } from '../api-error.ts';
import type { RequestMemory } from './request-memory.ts';

export interface BodyBounds {
  maxBytes: number;
  /** From the end of the headers to the end of the body; null for the time that the server gives every request. */
  withinMs: number | null;
  /** Chunks that may be of any size; the others must have four bytes in the mean. */
  freeChunks: number;
}

const BOUNDS: BodyBounds = { maxBytes: MAX_BODY_BYTES, withinMs: null, freeChunks: 1_024 };

type Memory = Pick<RequestMemory, 'tryReserve'>;

/**
 * Reads the body into `request.body`, a Buffer. Refuses a body that is too large, compressed, or in absurdly small chunks
 * as soon as this is known; express.raw would wait for the rest. Throws ApiError 400, 408, 413 or 415, and 503 when the
 * requests of this owner of memory already hold as much as they may.
 */
export function createReceiveBody(memory: Memory, bounds: BodyBounds = BOUNDS): RequestHandler {
  const { maxBytes } = bounds;
  return async (request, response, next) => {
    if ((request.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
      throw new ApiError(415, 'unsupported_media_type', 'Send the body without compression.');
    }
    if ((lengthOf(request) ?? 0) > maxBytes) throw tooLarge(maxBytes);
    if (request.headers.expect !== undefined) response.writeContinue();
    request.body = await readAll(request, response, memory, bounds);
    next();
  };
}

function lengthOf({ headers }: Request): number | undefined {
  const length = headers['content-length'];
  return length === undefined ? undefined : Number(length);
}

function readAll(
  request: Request,
  response: Response,
  memory: Memory,
  { maxBytes, withinMs, freeChunks }: BodyBounds,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const expectedBytes = lengthOf(request);
    let body: ByteCollector | null = createByteCollector({ maxBytes, expectedBytes, freeChunks });
    const refuse = (error: ApiError): void => {
      body = null;
      reject(error);
    };
    request.on('data', (chunk: Buffer) => {
      if (!body) return;
      const growth = body.growthFor(chunk.length);
      if (body.receivedBytes() + chunk.length > maxBytes) refuse(tooLarge(maxBytes));
      else if (growth > 0 && !memory.tryReserve(response, growth)) refuse(overloaded());
      else if (body.isShredded()) {
        stopReading(request, response);
        refuse(shredded());
      } else body.add(chunk);
    });
    request.on('end', () => {
      if (body) resolve(body.bytes());
    });
    request.on('error', () => {
      reject(new ApiError(400, 'incomplete_body', 'The body ended before its announced length.'));
    });
    if (withinMs !== null) {
      endAfter(withinMs, response, () => {
        refuse(tooSlow());
      });
    }
  });
}

/**
 * Reading on until the connection is closed would cost as much for each chunk as before. What is left of a read of 64 KiB,
 * up to 10,000 chunks, Node does not pass on once the request is dumped, as it does itself for a request without a reader.
 */
function stopReading(request: Request, response: Response): void {
  Object.assign(request, { _dumped: true });
  const stop = (): void => {
    if (!request.complete) request.socket.pause();
  };
  stop();
  // Node resumes it for the next request.
  response.once('finish', stop);
}

/** Calls `refuse` unless the response was sent before. */
function endAfter(withinMs: number, response: Response, refuse: () => void): void {
  const timer = setTimeout(refuse, withinMs);
  response.once('close', () => {
    clearTimeout(timer);
  });
}

function tooLarge(maxBytes: number): ApiError {
  return new ApiError(413, 'body_too_large', `The body is larger than ${maxBytes} bytes.`);
}

function tooSlow(): ApiError {
  return new ApiError(408, 'request_timeout', 'The request did not arrive in time.');
}

function shredded(): ApiError {
  return new ApiError(
    400,
    'chunks_too_small',
    'The body comes in too many chunks of one to three bytes. Send it in larger ones.',
  );
}
