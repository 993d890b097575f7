import { useEffect, useRef, useSyncExternalStore } from 'react';
import { GATEWAY_URL } from './addresses.ts';
import { sessionHeaders } from './client.ts';
import { failureOf } from './failure.ts';
import { noticeEndOfSession } from './query-client.ts';
import { readEvents } from './read-events.ts';

/** An attempt that has just ended. */
interface LiveAttempt {
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
/** How often the page polls before it asks for the stream again. */
const POLLS_AFTER_STREAM = 1;
const POLLS_WITHOUT_STREAM = 3;

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

/**
 * Reads the stream until the signal; while there is none, says every five seconds that there may be more. A stream that
 * ended is asked for again soon: the gateway ends those of a revoked key, and then says so.
 */
export async function followLive(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const wasOpen = await readStream(signal);
    become('polling');
    await poll(signal, wasOpen ? POLLS_AFTER_STREAM : POLLS_WITHOUT_STREAM);
  }
}

/** Resolves at the end of the stream to whether there was one. */
async function readStream(signal: AbortSignal): Promise<boolean> {
  let isOpen = false;
  try {
    const headers = sessionHeaders();
    const response = await fetch(`${GATEWAY_URL}/api/v1/live`, { headers, signal });
    if (!response.ok || response.body === null) {
      const failure = failureOf(response.status, await response.json().catch(() => null));
      if (!signal.aborted) noticeEndOfSession(failure);
      return false;
    }
    isOpen = true;
    become('live');
    for await (const { event, data } of readEvents(response.body)) receive(event, data);
  } catch {
    // The stream broke off: what came meanwhile is unknown, and polling shows it.
  }
  return isOpen;
}

function receive(event: string | undefined, data: string): void {
  if (event === 'attempt') tell({ kind: 'attempt', attempt: JSON.parse(data) as LiveAttempt });
  if (event === 'more') tell({ kind: 'more' });
}

async function poll(signal: AbortSignal, times: number): Promise<void> {
  for (let n = 0; n < times && !signal.aborted; n += 1) {
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

/** A busy webhook has hundreds of attempts per second; a person reads two states per second at most. */
const PAUSE_MS = 500;

/** Reloads soon after an event that concerns what is shown, once for all that come meanwhile. */
export function useLiveReload(concerns: (event: LiveEvent) => boolean, reload: () => void): void {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(
    () => () => {
      clearTimeout(timer.current);
    },
    [],
  );
  useLive((event) => {
    if (timer.current !== undefined || !concerns(event)) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      reload();
    }, PAUSE_MS);
  });
}
