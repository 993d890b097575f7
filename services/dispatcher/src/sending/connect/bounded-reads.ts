import type { Socket } from 'node:net';

const MAX_READ_BYTES = 4_096;

/**
 * Makes the socket return received data in pieces of 4 KiB at most, and none once it is destroyed. The
 * HTTP client parses all data of one read, even after a limit is exceeded: 64 KiB of tiny headers
 * took 100 ms of CPU for one attempt, and bodies were read up to 64 KiB beyond their limit.
 */
export function boundReads(socket: Socket): void {
  const read = socket.read.bind(socket);
  socket.read = (size?: number): unknown => {
    if (socket.destroyed) return null;
    return read(size ?? (Math.min(socket.readableLength, MAX_READ_BYTES) || undefined));
  };
}
