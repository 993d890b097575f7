import { MAX_BODY_BYTES } from '@posthorn/domain/message.ts';
import type { Request, RequestHandler } from 'express';
import { ApiError } from './api-error.ts';

/**
 * Reads the body into `request.body`, a Buffer. Refuses what is too large or compressed as soon as
 * it shows, and does not wait for the rest as express.raw does. Throws ApiError 400, 413, 415.
 */
export const receiveBody: RequestHandler = async (request, response, next) => {
  if ((request.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
    throw new ApiError(415, 'unsupported_media_type', 'Send the body without compression.');
  }
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  if (request.headers.expect !== undefined) response.writeContinue();
  request.body = await readAll(request);
  next();
};

function readAll(request: Request): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
      else reject(tooLarge());
    });
    request.on('end', () => {
      resolve(Buffer.concat(chunks));
    });
    request.on('error', () => {
      reject(new ApiError(400, 'incomplete_body', 'The body ended before its announced length.'));
    });
  });
}

function tooLarge(): ApiError {
  return new ApiError(413, 'body_too_large', `The body is larger than ${MAX_BODY_BYTES} bytes.`);
}
