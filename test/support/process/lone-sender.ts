import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { Attempt } from '@posthorn/domain/delivery/delivery.ts';
import { signerOf } from '@posthorn/domain/request/delivery-headers.ts';
import { STRICT_EGRESS, type EgressPolicy, type EgressRefusal } from '@posthorn/domain/egress.ts';
import { secretFromBytes } from '@posthorn/domain/request/signature.ts';
import type { DiagnosticsChannel, Dispatcher } from 'undici';
import type { IdentifiedTls } from '../../../services/dispatcher/src/webhooks.ts';
import {
  createDeadlineSweep,
  createSendWebhook,
} from '../../../services/dispatcher/src/sending/send-webhook.ts';
import {
  type Connections,
  type ConnectionsOptions,
  createConnections,
} from '../../../services/dispatcher/src/sending/connect/connections.ts';
import type { EgressProxy } from '../../../services/dispatcher/src/sending/connect/egress-proxy.ts';
import type { GuardOptions } from '../../../services/dispatcher/src/sending/connect/guarded-connect.ts';
import {
  createTlsSessions,
  type Handshake,
} from '../../../services/dispatcher/src/sending/connect/tls-sessions.ts';
import type { Resolve } from '../../../services/dispatcher/src/sending/connect/resolve-host.ts';
import { sampleDue } from '../samples/sample-record.ts';
import { sampleWebhook } from '../samples/sample-webhook.ts';

export const TIMEOUT_MS = 200;

const DUE = sampleDue({ messageId: 'msg_01hf2m6q7xabcdefghjkmnpqrs' });

/** The sender of the dispatcher alone, with a clock that moves only when it is told to. */
export interface LoneSender {
  /** Rejects when nothing was sent because the proxy failed. */
  send: (url: string, tls?: IdentifiedTls, payload?: Buffer) => Promise<Attempt>;
  timePasses: (ms: number) => void;
  /** Returns how many requests the HTTP client still holds. */
  held: () => number;
  /** Returns how many open connections carry no request. */
  idle: () => number;
  /** Returns how many bytes of response bodies the sender has read. */
  readBytes: () => number;
  /** Returns how many responses have begun. */
  begun: () => number;
  refused: EgressRefusal[];
  /** The sender's side of every connection that was opened. */
  opened: Socket[];
  close: () => Promise<void>;
}

export interface LoneSenderOptions {
  resolve: Resolve;
  policy?: Partial<EgressPolicy>;
  proxy?: EgressProxy;
  /** For certificates and keys of webhooks with TLS settings of their own. */
  tlsClientBytes?: number;
}

type OpenedConnections = Pick<GuardOptions, 'policy' | 'hosts'> &
  Partial<Pick<GuardOptions, 'proxy' | 'onRefused'>> &
  Partial<Omit<ConnectionsOptions, 'guard'>> & { onHandshake?: (kind: Handshake) => void };

const CONNECTED = 'undici:client:connected';

export function openLoneSender({
  resolve,
  policy,
  proxy,
  tlsClientBytes = 1_048_576,
}: LoneSenderOptions): LoneSender {
  let nowMs = 0;
  const seen = { readBytes: 0, begun: 0 };
  const refused: EgressRefusal[] = [];
  const opened: Socket[] = [];
  const onConnected = (message: unknown): void => {
    opened.push((message as DiagnosticsChannel.ClientConnectedMessage).socket);
  };
  subscribe(CONNECTED, onConnected);
  const connections = openConnections({
    policy: { ...STRICT_EGRESS, allowLoopback: true, allowHttp: true, ...policy },
    hosts: { resolve, forget: () => undefined },
    proxy: proxy ?? null,
    onRefused: (reason) => refused.push(reason),
    tlsClientBytes,
  });
  const watched = { dispatch: watch(seen)(connections.agentOf(null).dispatch) };
  const deadlines = createDeadlineSweep(() => nowMs);
  const post = createSendWebhook({
    agentOf: ({ tls }) => (tls ? connections.agentOf(tls) : watched),
    deadlines,
    timeoutMs: TIMEOUT_MS,
    userAgent: 'Posthorn/1',
    nowMs: () => 0,
    monotonicMs: () => nowMs,
  });
  return {
    async send(url, tls, payload = Buffer.from('{}')) {
      const webhook = sampleWebhook(1, { url, secret: secretFromBytes(Buffer.alloc(32, 7)) });
      const { origin, pathname } = new URL(url);
      const loaded = {
        kind: 'opened' as const,
        webhook,
        signer: signerOf(webhook),
        origin,
        path: pathname,
        tls: tls ?? null,
        appHeld: null,
      };
      const attempt = await post(DUE, payload, loaded);
      if (!attempt) throw new Error('the proxy failed');
      return attempt;
    },
    timePasses(ms) {
      nowMs += ms;
      deadlines.tick();
    },
    held: () => connections.count().held,
    idle: () => connections.count().idle,
    readBytes: () => seen.readBytes,
    begun: () => seen.begun,
    refused,
    opened,
    async close() {
      deadlines.stop();
      unsubscribe(CONNECTED, onConnected);
      await connections.destroy();
    },
  };
}

/** Opens the connections of a sender. What is not given has room for everything, and counts nothing. */
export function openConnections({
  policy,
  hosts,
  proxy = null,
  onRefused = () => undefined,
  onHandshake = () => undefined,
  ...given
}: OpenedConnections): Connections {
  return createConnections({
    maxBytes: 10_485_760,
    tlsClientBytes: 1_048_576,
    onSent: () => undefined,
    onEvicted: () => undefined,
    ...given,
    guard: {
      policy,
      hosts,
      proxy,
      onRefused,
      connectTimeoutMs: 5_000,
      sessions: createTlsSessions({ maxBytes: 1_048_576, onHandshake }),
    },
  });
}

/** Counts what has arrived, so that tests need not wait by the clock. */
function watch(seen: {
  readBytes: number;
  begun: number;
}): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) =>
    dispatch(options, {
      ...handler,
      onResponseStart(...event) {
        handler.onResponseStart?.(...event);
        seen.begun += 1;
      },
      onResponseData(controller, chunk) {
        seen.readBytes += chunk.length;
        handler.onResponseData?.(controller, chunk);
      },
    });
}
