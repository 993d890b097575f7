import { type Arrival, isSuccess } from '../../audit/evidence.ts';
import type { Moment, OrderedDelivery, OrderedKey, ListedKey } from '../../audit/order.ts';
import { ENDPOINTS, endpointsOf, FINAL, keyOf, KEYS, orderingOf, placeOf } from './order-plan.ts';

/** A delivery, by the number of its message and that of its endpoint. */
export interface Target {
  n: number;
  endpoint: number;
}

/** What the API shows of the deliveries of the round. */
export interface Shown {
  /** Those that have ended without a success. */
  ended: readonly (Target & NonNullable<OrderedDelivery['ended']>)[];
  /** By `sequenceOf`. */
  listed: ReadonlyMap<string, ListedKey>;
}

/** Names a key at an endpoint. */
export function sequenceOf(key: number, endpoint: number): string {
  return `${endpoint}/key-${key}`;
}

type Seen = Omit<OrderedDelivery, 'name' | 'ended'> & { messageId: string; failures: number };

/** The messages that were accepted, and the requests that came of them. */
export class OrderBook {
  /** Failed attempts after which a delivery is exhausted. */
  readonly #attempts: number;
  /** The id of each accepted message, by its number. */
  readonly #ids: string[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #seen = new Map<number, Seen>();
  #events = 0;

  constructor(attempts: number) {
    this.#attempts = attempts;
  }

  get accepted(): number {
    return this.#numbers.size;
  }

  /** The number of requests and responses so far. */
  get events(): Moment {
    return this.#events;
  }

  numberOf(messageId: string): number | undefined {
    return this.#numbers.get(messageId);
  }

  noteAccepted(n: number, messageId: string): void {
    this.#ids[n] = messageId;
    this.#numbers.set(messageId, n);
  }

  noteArrival({ n, endpoint, messageId }: Arrival): void {
    if (n === null) return;
    const seen = this.#seenOf({ n, endpoint });
    this.#events += 1;
    if (seen.firstAt === Infinity) Object.assign(seen, { firstAt: this.#events, messageId });
    if (seen.messageId !== messageId) seen.hasTwoIds = true;
  }

  noteAnswered(arrival: Arrival): void {
    const { n, endpoint, status } = arrival;
    if (n === null) return;
    const seen = this.#seenOf({ n, endpoint });
    this.#events += 1;
    if (isSuccess(arrival)) {
      seen.succeededAt = Math.min(seen.succeededAt, this.#events);
      return;
    }
    seen.failures += 1;
    if (status === FINAL || seen.failures >= this.#attempts) {
      seen.refusedAt = Math.min(seen.refusedAt, this.#events);
    }
  }

  /** To be called before the request that ends the delivery, or goes on behind it. */
  noteAsked(target: Target, what: 'cancelledAt' | 'skippedAt'): void {
    const seen = this.#seenOf(target);
    seen[what] = Math.min(seen[what], this.#events);
  }

  /** The keys of each endpoint in which an accepted delivery has neither succeeded nor ended. */
  open({ ended }: Pick<Shown, 'ended'>): Set<string> {
    const over = new Set(ended.map(placeIn));
    const open = new Set<string>();
    for (const { n, endpoint } of this.#targets()) {
      const at = placeIn({ n, endpoint });
      const isOpen = (this.#seen.get(at)?.succeededAt ?? Infinity) === Infinity && !over.has(at);
      if (isOpen) open.add(sequenceOf(keyOf(n), endpoint));
    }
    return open;
  }

  /** Returns what the audit compares. */
  *keys({ ended, listed }: Shown): Generator<OrderedKey> {
    const endOf = new Map(ended.map((each) => [placeIn(each), each]));
    for (let key = 0; key < KEYS; key += 1) {
      for (const endpoint of endpointsOf(key)) {
        const name = sequenceOf(key, endpoint);
        const deliveries = this.#deliveriesOf(key, endpoint, endOf);
        const ordering = orderingOf(endpoint);
        yield { name, ordering, deliveries, listed: listed.get(name) ?? null };
      }
    }
  }

  *#deliveriesOf(
    key: number,
    endpoint: number,
    endOf: ReadonlyMap<number, NonNullable<OrderedDelivery['ended']>>,
  ): Generator<OrderedDelivery> {
    for (let n = key; n < this.#ids.length; n += KEYS) {
      const id = this.#ids[n];
      if (id === undefined) continue;
      const at = placeIn({ n, endpoint });
      const seen = this.#seen.get(at) ?? unseen(id);
      const hasTwoIds = seen.hasTwoIds || (seen.messageId !== '' && seen.messageId !== id);
      const name = `${sequenceOf(key, endpoint)} #${placeOf(n)} (${id})`;
      yield { ...seen, name, hasTwoIds, ended: endOf.get(at) ?? null };
    }
  }

  *#targets(): Generator<Target> {
    for (const n of this.#numbers.values()) {
      for (const endpoint of endpointsOf(keyOf(n))) yield { n, endpoint };
    }
  }

  #seenOf(target: Target): Seen {
    const at = placeIn(target);
    const known = this.#seen.get(at);
    if (known) return known;
    const seen = unseen('');
    this.#seen.set(at, seen);
    return seen;
  }
}

function placeIn({ n, endpoint }: Target): number {
  return n * ENDPOINTS + endpoint;
}

function unseen(messageId: string): Seen {
  return {
    messageId,
    firstAt: Infinity,
    succeededAt: Infinity,
    refusedAt: Infinity,
    cancelledAt: Infinity,
    skippedAt: Infinity,
    hasTwoIds: false,
    failures: 0,
  };
}
