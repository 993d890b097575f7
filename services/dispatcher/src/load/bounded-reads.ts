import type { Socket } from 'node:net';

const MAX_READ_BYTES = 4_096;

/**
 * Hands out what has arrived in pieces of 4 KiB, and nothing once the socket is destroyed. The HTTP
 * client parses a read to its end, however early it decides that it was too much: 64 KiB of tiny
 * headers cost 100 ms of CPU for one attempt, and a body was read 64 KiB beyond its limit.
 */
export function boundReads(socket: Socket): void {
  const read = socket.read.bind(socket);
  socket.read = (size?: number): unknown => {
    if (socket.destroyed) return null;
    return read(size ?? (Math.min(socket.readableLength, MAX_READ_BYTES) || undefined));
  };
}
