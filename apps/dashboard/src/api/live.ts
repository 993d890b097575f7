import { useEffect, useRef, useSyncExternalStore } from 'react';
import { GATEWAY_URL } from './addresses.ts';
import { sessionHeaders } from './client.ts';
import { readEvents } from './read-events.ts';

/** An attempt that has just ended. */
export interface LiveAttempt {
  messageId: string;
  deliveryId: string;
  webhookId: string;
  appId?: string;
  outcome: string;
}

/** `more`: attempts ended that are not named, so whatever is shown may be old. */
export type LiveEvent = { kind: 'attempt'; attempt: LiveAttempt } | { kind: 'more' };

export type LiveState = 'connecting' | 'live' | 'polling';

const POLL_MS = 5_000;
const RECONNECT_MS = 15_000;

const listeners = new Set<(event: LiveEvent) => void>();
const stateListeners = new Set<() => void>();
let state: LiveState = 'connecting';

function become(next: LiveState): void {
  if (state === next) return;
  state = next;
  for (const listener of stateListeners) listener();
}

function tell(event: LiveEvent): void {
  for (const listener of listeners) listener(event);
}

/** Reads the stream until the signal; while there is none, says every five seconds that there may be more. */
export async function followLive(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const response = await fetch(`${GATEWAY_URL}/api/v1/live`, {
        headers: sessionHeaders(),
        signal,
      });
      if (!response.ok || response.body === null) throw new Error(`answered ${response.status}`);
      become('live');
      for await (const { event, data } of readEvents(response.body)) receive(event, data);
    } catch {
      // Also a stream that the gateway ended: what came meanwhile is unknown, and polling shows it.
    }
    become('polling');
    await poll(signal);
  }
}

function receive(event: string, data: string): void {
  if (event === 'attempt') tell({ kind: 'attempt', attempt: JSON.parse(data) as LiveAttempt });
  if (event === 'more') tell({ kind: 'more' });
}

async function poll(signal: AbortSignal): Promise<void> {
  const endsAtMs = Date.now() + RECONNECT_MS;
  while (!signal.aborted && Date.now() < endsAtMs) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    if (!document.hidden) tell({ kind: 'more' });
  }
}

/** Calls `onEvent` for each event while the component is shown. */
export function useLive(onEvent: (event: LiveEvent) => void): void {
  const latest = useRef(onEvent);
  useEffect(() => {
    latest.current = onEvent;
  });
  useEffect(() => {
    const listener = (event: LiveEvent): void => {
      latest.current(event);
    };
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }, []);
}

export function useLiveState(): LiveState {
  return useSyncExternalStore(
    (listener) => {
      stateListeners.add(listener);
      return () => stateListeners.delete(listener);
    },
    () => state,
  );
}
