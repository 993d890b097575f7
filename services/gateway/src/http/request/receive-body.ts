import { MAX_BODY_BYTES } from '@posthorn/domain/message/message.ts';
import type { Request, RequestHandler, Response } from 'express';
import { ApiError, overloaded } from '../api-error.ts';
import type { RequestMemory } from './request-memory.ts';

/**
 * Reads the body into `request.body`, a Buffer. Refuses a body that is too large or compressed as soon as
 * this is known; express.raw would wait for the rest. Throws ApiError 400, 413 or 415, and 503 when the
 * requests of this company already hold as much memory as they may.
 */
export function createReceiveBody(
  memory: Pick<RequestMemory, 'tryReserve'>,
  maxBytes = MAX_BODY_BYTES,
): RequestHandler {
  return async (request, response, next) => {
    if ((request.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
      throw new ApiError(415, 'unsupported_media_type', 'Send the body without compression.');
    }
    if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
    if (request.headers.expect !== undefined) response.writeContinue();
    request.body = await readAll(request, response, memory, maxBytes);
    next();
  };
}

function readAll(
  request: Request,
  response: Response,
  memory: Pick<RequestMemory, 'tryReserve'>,
  maxBytes: number,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] | null = [];
    let bytes = 0;
    const refuse = (error: ApiError): void => {
      chunks = null;
      reject(error);
    };
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (!chunks) return;
      if (bytes > maxBytes) refuse(tooLarge(maxBytes));
      else if (!memory.tryReserve(response, chunk.length)) refuse(overloaded());
      else chunks.push(chunk);
    });
    request.on('end', () => {
      if (chunks) resolve(Buffer.concat(chunks));
    });
    request.on('error', () => {
      reject(new ApiError(400, 'incomplete_body', 'The body ended before its announced length.'));
    });
  });
}

function tooLarge(maxBytes: number): ApiError {
  return new ApiError(413, 'body_too_large', `The body is larger than ${maxBytes} bytes.`);
}
