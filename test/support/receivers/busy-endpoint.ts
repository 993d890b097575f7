import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An endpoint for many requests: it counts them and does not keep them. */
export interface BusyEndpoint {
  url: string;
  /** Message id → requests so far. */
  requests: ReadonlyMap<string, number>;
  /** Message id → requests that got a 2xx response. */
  successes: ReadonlyMap<string, number>;
  total: () => number;
  /** Returns how many requests have no response yet; `mostOpen` returns the highest such number. */
  open: () => number;
  mostOpen: () => number;
  /** Responds with this status after this time, and to the requests on hold at once. */
  answerWith: (status: number, afterMs?: number) => void;
  /** Leaves every request without a response until `answerWith`. */
  hold: () => void;
  close: () => Promise<void>;
}

interface State {
  requests: Map<string, number>;
  successes: Map<string, number>;
  open: Map<ServerResponse, string>;
  held: Set<ServerResponse>;
  total: number;
  mostOpen: number;
  answer: { status: number; afterMs: number } | null;
}

/** Starts an endpoint that responds with 200 at once until `answerWith`. */
export async function startBusyEndpoint(): Promise<BusyEndpoint> {
  const state: State = {
    requests: new Map(),
    successes: new Map(),
    open: new Map(),
    held: new Set(),
    total: 0,
    mostOpen: 0,
    answer: { status: 200, afterMs: 0 },
  };
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      take(state, String(request.headers['webhook-id']), response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { requests, successes, open } = state;
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    requests,
    successes,
    total: () => state.total,
    open: () => open.size,
    mostOpen: () => state.mostOpen,
    answerWith(status, afterMs = 0) {
      state.answer = { status, afterMs };
      for (const response of state.held) answer(state, response, status);
    },
    hold() {
      state.answer = null;
    },
    close: () => close(server),
  };
}

function take(state: State, messageId: string, response: ServerResponse): void {
  const { open, held, requests } = state;
  open.set(response, messageId);
  state.total += 1;
  state.mostOpen = Math.max(state.mostOpen, open.size);
  countIn(requests, messageId);
  // The sender may give up first.
  response.on('close', () => {
    open.delete(response);
    held.delete(response);
  });
  if (!state.answer) {
    held.add(response);
    return;
  }
  const { status, afterMs } = state.answer;
  if (afterMs === 0) answer(state, response, status);
  else setTimeout(answer, afterMs, state, response, status);
}

function answer({ open, held, successes }: State, response: ServerResponse, status: number): void {
  const messageId = open.get(response);
  if (messageId === undefined) return;
  open.delete(response);
  held.delete(response);
  if (status < 300) countIn(successes, messageId);
  response.writeHead(status).end();
}

function countIn(counts: Map<string, number>, messageId: string): void {
  counts.set(messageId, (counts.get(messageId) ?? 0) + 1);
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => {
      resolve();
    });
    server.closeAllConnections();
  });
}
