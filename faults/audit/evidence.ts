/** The answer to a request to accept a message. */
export type Answer =
  | { kind: 'accepted'; messageId: string }
  /** Certainly not stored. */
  | { kind: 'refused'; status: number }
  /** It may have been stored: no answer came, or a 5xx. */
  | { kind: 'unknown'; why: string };

/** One message that the client sent. Times are milliseconds since 1970. */
export interface Sent {
  n: number;
  /** The endpoints that it is for, by number. */
  endpoints: readonly number[];
  sentAtMs: number;
  answeredAtMs: number;
  answer: Answer;
}

/** One request that an endpoint got. */
export interface Arrival {
  messageId: string;
  /** The number in the body; null when it cannot be read. */
  n: number | null;
  endpoint: number;
  atMs: number;
  /** Infinity while there is no answer. */
  answeredAtMs: number;
  status: number;
  isSigned: boolean;
  isIntact: boolean;
}

/** A delivery as the API shows it. */
export interface ShownDelivery {
  status: string;
  attemptCount: number;
}

/** An attempt as the API shows it, by the clock of its dispatcher, in milliseconds since 1970. */
export interface RecordedAttempt {
  startedAtMs: number;
  endedAtMs: number;
}

/** A duplicate is explained when the request that it repeats was in flight in this time. */
export interface Excuse {
  reason: string;
  fromMs: number;
  toMs: number;
  /** Whether it explains duplicates of the message with this number; of every message when it is left out. */
  isOf?: (n: number) => boolean;
}

/** One service that was asked to stop. */
export interface Stop {
  service: string;
  tookMs: number;
  /** `exit code 0`, or how else it ended. */
  exit: string;
}

/** Everything that is known about one round. */
export interface Evidence {
  sent: readonly Sent[];
  /** Messages of the load that were left out, because too many had no response yet. */
  notSent: number;
  arrivals: readonly Arrival[];
  /** message-created records that were published; null when their topic was deleted meanwhile. */
  records: number | null;
  /** By `deliveryKey`. */
  shown: ReadonlyMap<string, ShownDelivery>;
  /**
   * The attempts of those deliveries that were pending when they were read first, have more requests than attempts, or
   * one after a 2xx, or more than one with a clock that jumps, oldest first.
   */
  recorded: ReadonlyMap<string, readonly RecordedAttempt[]>;
  /** How often an endpoint refuses a message before it accepts it; Infinity for always. */
  refusalsOf: (n: number, endpoint: number) => number;
  delaysMs: readonly number[];
  excuses: readonly Excuse[];
  stops: readonly Stop[];
  /** Services that ended by themselves. */
  crashes: readonly string[];
  /** How often each answer came: a status, or why there was none. */
  answers: Readonly<Record<string, number>>;
  /** The longest time to the answer to one request; a message that is repeated has several. */
  slowestAnswerMs: number;
}

export function deliveryKey(messageId: string, endpoint: number): string {
  return `${messageId}/${endpoint}`;
}

/** One accepted message and one of its endpoints, with the requests that came of it, oldest first. */
export interface AuditedDelivery {
  key: string;
  sent: Sent;
  endpoint: number;
  acceptedAtMs: number;
  arrivals: readonly Arrival[];
}

export function arrivalsByDelivery(arrivals: readonly Arrival[]): Map<string, Arrival[]> {
  const byKey = new Map<string, Arrival[]>();
  for (const arrival of arrivals) {
    const key = deliveryKey(arrival.messageId, arrival.endpoint);
    const known = byKey.get(key);
    if (known) known.push(arrival);
    else byKey.set(key, [arrival]);
  }
  for (const each of byKey.values()) each.sort((a, b) => a.atMs - b.atMs);
  return byKey;
}

/** Returns every delivery that a 202 promised. */
export function acceptedDeliveries({ sent, arrivals }: Evidence): AuditedDelivery[] {
  const byKey = arrivalsByDelivery(arrivals);
  return sent.flatMap((each) => {
    const { answer } = each;
    if (answer.kind !== 'accepted') return [];
    return each.endpoints.map((endpoint) => {
      const key = deliveryKey(answer.messageId, endpoint);
      const acceptedAtMs = each.answeredAtMs;
      return { key, sent: each, endpoint, acceptedAtMs, arrivals: byKey.get(key) ?? [] };
    });
  });
}

export function isSuccess({ status }: Pick<Arrival, 'status'>): boolean {
  return status >= 200 && status < 300;
}

/** Something that must not happen, and examples of it. */
export interface Finding {
  what: string;
  count: number;
  examples: string[];
}

const EXAMPLES = 5;

/** Returns one finding with a count of all examples and the first of them, or nothing when there is no example. */
export function finding(what: string, examples: readonly string[]): Finding[] {
  if (examples.length === 0) return [];
  return [{ what, count: examples.length, examples: examples.slice(0, EXAMPLES) }];
}
