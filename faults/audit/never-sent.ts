import type { Arrival, Evidence, Sent } from './evidence.ts';

export type Strange =
  | 'nothing like it was sent'
  | 'it was refused'
  | 'it is for another endpoint'
  | 'the same message was accepted twice';

export interface StrangeArrival {
  arrival: Arrival;
  why: Strange;
}

/** Requests that no message explains. A message whose answer was lost may arrive, under one id. */
export function strangeArrivals({ sent, arrivals }: Evidence): StrangeArrival[] {
  const byNumber = new Map(sent.map((each) => [each.n, each]));
  const idOf = new Map<number, string>();
  for (const { n, answer } of sent) if (answer.kind === 'accepted') idOf.set(n, answer.messageId);
  return arrivals.flatMap((arrival) => {
    const of = arrival.n === null ? undefined : byNumber.get(arrival.n);
    const why = of ? whyStrange(arrival, of, idOf) : 'nothing like it was sent';
    return why === null ? [] : [{ arrival, why }];
  });
}

/** Notes the first id of a message whose answer was lost. */
function whyStrange(
  { messageId, endpoint }: Arrival,
  { n, answer, endpoints }: Sent,
  idOf: Map<number, string>,
): Strange | null {
  if (answer.kind === 'refused') return 'it was refused';
  if (!endpoints.includes(endpoint)) return 'it is for another endpoint';
  const known = idOf.get(n);
  if (known === undefined) idOf.set(n, messageId);
  return known === undefined || known === messageId ? null : 'the same message was accepted twice';
}
