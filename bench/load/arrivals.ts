/** When and how often each message reached each endpoint. */
export interface Arrivals {
  note: (messageId: string, endpoint: number) => void;
  /** By `performance.now`; undefined when it has not arrived. */
  firstAtMs: (messageId: string, endpoint: number) => number | undefined;
  count: (messageId: string, endpoint: number) => number;
  /** All requests so far. */
  total: () => number;
  /**
   * Forgets all messages: those of a finished phase would only lengthen garbage collection in the next
   * one.
   */
  forgetAll: () => void;
}

interface Arrival {
  firstAtMs: number;
  count: number;
}

export function createArrivals(nowMs: () => number): Arrivals {
  const known = new Map<string, Arrival>();
  let total = 0;
  const of = (messageId: string, endpoint: number) => known.get(`${messageId}/${endpoint}`);
  return {
    note(messageId, endpoint) {
      total += 1;
      const arrival = of(messageId, endpoint);
      if (arrival) arrival.count += 1;
      else known.set(`${messageId}/${endpoint}`, { firstAtMs: nowMs(), count: 1 });
    },
    firstAtMs: (messageId, endpoint) => of(messageId, endpoint)?.firstAtMs,
    count: (messageId, endpoint) => of(messageId, endpoint)?.count ?? 0,
    total: () => total,
    forgetAll: () => {
      known.clear();
    },
  };
}
