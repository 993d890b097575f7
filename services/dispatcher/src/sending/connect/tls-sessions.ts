import { createByteCache } from '@posthorn/platform/memory/coalescing-cache.ts';
import { monotonicClockMs, systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { TLSSocket } from 'node:tls';

/**
 * TLS sessions of endpoints, so that a new connection needs no full handshake: 0.5 ms instead of 1.1 ms of CPU here,
 * and no signature of the endpoint.
 *
 * A resumed handshake shows no certificate. So a session is offered only where everything is as it was when its
 * certificate was verified (`Peer`), and only as long as that check may be trusted: for an hour at most, also when the
 * endpoint renews the session with each connection, and not after the certificate has expired.
 */
export interface TlsSessions {
  /** Returns the session to offer to a peer; undefined for a full handshake. */
  find: (peer: Peer) => Session | undefined;
  /** Follows a connection from before its handshake begins, and keeps the sessions that the endpoint sends. */
  follow: (socket: TLSSocket, peer: Peer, offered: Session | undefined) => void;
  usedBytes: () => number;
}

/** Everything that decides whether a certificate is accepted, and where the connection leads. */
export interface Peer {
  /** The authorities and the client certificate: the id of a webhook's own TLS settings, '' for the defaults. */
  settings: string;
  /** The name or the address that the certificate is for. */
  name: string;
  /** The checked address that the socket is connected to, or what the proxy was given. */
  address: string;
  port: string;
}

export interface Session {
  bytes: Buffer;
  /** By the monotonic clock. */
  endsAtMs: number;
}

interface SessionOptions {
  maxBytes: number;
  /** Called for each handshake that has succeeded. */
  onHandshake: (kind: Handshake) => void;
  monotonicMs?: () => number;
  wallClockMs?: () => number;
}

export const HANDSHAKES = ['full', 'resumed'] as const;
export type Handshake = (typeof HANDSHAKES)[number];

/** A session with the certificate of its endpoint is 0.7 to 3 kB. An endpoint chooses the size, up to 64 KiB. */
const MAX_SESSION_BYTES = 8_192;
/** The key, the entry of the cache and the two objects of a buffer. */
const ENTRY_BYTES = 600;
const MAX_SESSIONS = 100_000;
/** How late a certificate that the endpoint has replaced by one that is not valid is noticed, at most. */
const VERIFIED_FOR_MS = 3_600_000;

export function createTlsSessions({
  maxBytes,
  onHandshake,
  monotonicMs = monotonicClockMs,
  wallClockMs = systemClockMs,
}: SessionOptions): TlsSessions {
  const sessions = createByteCache<Session>({
    maxBytes,
    maxPieces: MAX_SESSIONS,
    sizeOf: ({ bytes }, key) => bytes.length + key.length + ENTRY_BYTES,
  });

  const endOf = (socket: TLSSocket): number => monotonicMs() + verifiedForMs(socket, wallClockMs());
  function keep(key: string, received: Buffer, endsAtMs: number): void {
    if (received.length > MAX_SESSION_BYTES) return;
    sessions.set(key, { bytes: ownBytes(received), endsAtMs });
  }
  function drop(key: string, session: Session | undefined): void {
    if (session && sessions.peek(key) === session) sessions.delete(key);
  }

  return {
    find(peer) {
      const key = keyOf(peer);
      const session = sessions.get(key);
      if (!session || session.endsAtMs > monotonicMs()) return session;
      sessions.delete(key);
      return undefined;
    },
    follow(socket, peer, offered) {
      const key = keyOf(peer);
      let endsAtMs: number | null = null;
      // An endpoint that cannot resume may end the handshake instead of making a full one.
      const onFailed = (): void => {
        drop(key, offered);
      };
      socket.once('error', onFailed);
      socket.once('secureConnect', () => {
        socket.off('error', onFailed);
        const isResumed = socket.isSessionReused();
        // The endpoint has forgotten the session, or has another certificate.
        if (!isResumed) drop(key, offered);
        onHandshake(isResumed ? 'resumed' : 'full');
      });
      // Node emits it only once the certificate and the name are verified.
      socket.on('session', (received: Buffer) => {
        endsAtMs ??= offered && socket.isSessionReused() ? offered.endsAtMs : endOf(socket);
        keep(key, received, endsAtMs);
      });
    },
    usedBytes: () => sessions.calculatedSize,
  };
}

/** How long the certificate counts as verified, which it was right now. */
function verifiedForMs(socket: TLSSocket, nowMs: number): number {
  const { validToDate } = socket.getPeerX509Certificate() ?? {};
  return validToDate ? Math.min(VERIFIED_FOR_MS, validToDate.getTime() - nowMs) : 0;
}

/** Node's is a view of 64 KiB, which it would keep alive. */
function ownBytes(received: Buffer): Buffer {
  const bytes = Buffer.allocUnsafeSlow(received.length);
  received.copy(bytes);
  return bytes;
}

/** None of the parts contains a space. */
function keyOf({ settings, name, address, port }: Peer): string {
  return `${settings} ${name} ${address} ${port}`;
}
