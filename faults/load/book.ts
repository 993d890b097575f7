import { isSuccess, type Arrival, deliveryKey, type Sent } from '../audit/evidence.ts';

/** The messages that the client of one round has sent so far, and the requests that its receiver got. */
export interface Book {
  sent: readonly Sent[];
  arrivals: readonly Arrival[];
  noteSent: (sent: Sent) => void;
  noteArrival: (arrival: Arrival) => void;
  /** Called when the receiver has answered. */
  noteAnswered: (arrival: Arrival) => void;
  counts: () => BookCounts;
  /** Returns when the oldest delivery that got no request yet was accepted; null when there is none. */
  oldestUnseenAtMs: () => number | null;
  /** When the newest request came; 0 before the first. */
  lastArrivalAtMs: () => number;
}

export interface BookCounts {
  accepted: number;
  delivered: number;
  /** Accepted deliveries that have not ended. */
  waiting: number;
}

interface State {
  sent: Sent[];
  arrivals: Arrival[];
  counts: Omit<BookCounts, 'waiting'>;
  /** Deliveries that have ended, judged by the received requests. */
  ended: Set<string>;
  /** How many requests of a delivery have come. */
  requests: Map<string, number>;
  waiting: Set<string>;
  /** Accepted and without a request → when accepted; in the order of acceptance. */
  unseen: Map<string, number>;
}

/** `requestsUntilEnd` is how many requests end a delivery that its endpoint always refuses. */
export function createBook(requestsUntilEnd: number): Book {
  const state: State = {
    sent: [],
    arrivals: [],
    counts: { accepted: 0, delivered: 0 },
    ended: new Set(),
    requests: new Map(),
    waiting: new Set(),
    unseen: new Map(),
  };
  return {
    sent: state.sent,
    arrivals: state.arrivals,
    noteSent: (sent) => {
      noteSent(state, sent);
    },
    noteArrival: (arrival) => {
      noteArrival(state, arrival);
    },
    noteAnswered: (arrival) => {
      noteAnswered(state, arrival, requestsUntilEnd);
    },
    counts: () => ({ ...state.counts, waiting: state.waiting.size }),
    oldestUnseenAtMs: () => state.unseen.values().next().value ?? null,
    lastArrivalAtMs: () => state.arrivals.at(-1)?.atMs ?? 0,
  };
}

function noteSent(state: State, sent: Sent): void {
  state.sent.push(sent);
  const { answer } = sent;
  if (answer.kind !== 'accepted') return;
  state.counts.accepted += 1;
  for (const endpoint of sent.endpoints) {
    const key = deliveryKey(answer.messageId, endpoint);
    if (!state.requests.has(key)) state.unseen.set(key, sent.answeredAtMs);
    if (!state.ended.has(key)) state.waiting.add(key);
  }
}

function noteArrival(state: State, arrival: Arrival): void {
  const key = deliveryKey(arrival.messageId, arrival.endpoint);
  state.arrivals.push(arrival);
  state.requests.set(key, (state.requests.get(key) ?? 0) + 1);
  state.unseen.delete(key);
}

function noteAnswered(state: State, arrival: Arrival, requestsUntilEnd: number): void {
  const key = deliveryKey(arrival.messageId, arrival.endpoint);
  const isLast = (state.requests.get(key) ?? 0) >= requestsUntilEnd;
  if (state.ended.has(key) || !(isSuccess(arrival) || isLast)) return;
  state.ended.add(key);
  state.waiting.delete(key);
  if (isSuccess(arrival)) state.counts.delivered += 1;
}
