import { type Arrival, deliveryKey, type Evidence, type Sent } from './evidence.ts';

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
