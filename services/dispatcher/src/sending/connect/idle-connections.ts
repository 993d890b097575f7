import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { DiagnosticsChannel } from 'undici';

export interface IdleConnections {
  /** Takes a connection that was just opened. */
  opened: (socket: Socket) => void;
  stop: () => void;
}

export interface IdleOptions {
  /** Beyond this the one that has been idle for longest is closed. */
  maxIdle: number;
  /** Called for each request that is sent; false for the first on its connection. */
  onSent: (isReused: boolean) => void;
}

const SENT = 'undici:client:sendHeaders';
const ANSWERED = 'undici:request:trailers';

/**
 * Bounds the idle connections of all origins together. undici bounds them for one origin alone, and
 * closes them by time: 2,000 attempts a second to as many hosts would leave 60,000 open for 30 s.
 * Its channels tell which socket carries which request, and cost some 2 µs a request.
 */
export function createIdleConnections({ maxIdle, onSent }: IdleOptions): IdleConnections {
  const idle = new Set<Socket>();
  const sentBySocket = new WeakMap<Socket, number>();
  const socketByRequest = new WeakMap<object, Socket>();

  function rest(socket: Socket): void {
    idle.add(socket);
    if (idle.size <= maxIdle) return;
    const [oldest] = idle;
    if (!oldest) return;
    idle.delete(oldest);
    // Should undici pick it in this very moment, it sends the request on a new connection.
    oldest.destroy();
  }
  function onRequestSent(message: unknown): void {
    const { request, socket } = message as DiagnosticsChannel.ClientSendHeadersMessage;
    const sent = sentBySocket.get(socket);
    if (sent === undefined) return;
    sentBySocket.set(socket, sent + 1);
    socketByRequest.set(request, socket);
    idle.delete(socket);
    onSent(sent > 0);
  }
  function onAnswered(message: unknown): void {
    const { request } = message as DiagnosticsChannel.RequestTrailersMessage;
    const socket = socketByRequest.get(request);
    if (socket && !socket.destroyed) rest(socket);
  }

  subscribe(SENT, onRequestSent);
  subscribe(ANSWERED, onAnswered);
  return {
    opened(socket) {
      sentBySocket.set(socket, 0);
      socket.once('close', () => idle.delete(socket));
      rest(socket);
    },
    stop() {
      unsubscribe(SENT, onRequestSent);
      unsubscribe(ANSWERED, onAnswered);
    },
  };
}
