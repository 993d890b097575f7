import { once } from 'node:events';
import { connect } from 'node:net';
import { settlesWithin } from '../waiting.ts';

/** Returns whether Redis replies "+PONG". "-LOADING" and "-NOAUTH" come from a Redis that this stack cannot use (yet). */
export async function isRedisReady(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port });
  socket.write('PING\r\n');
  const replied = once(socket, 'data').then(
    ([data]) => String(data).startsWith('+PONG'),
    () => false,
  );
  const isInTime = await settlesWithin(replied, 2_000);
  socket.destroy();
  return isInTime && (await replied);
}
