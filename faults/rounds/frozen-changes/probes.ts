import { type Finding, finding } from '../../audit/evidence.ts';

/** docs/contract.md C5.11, C14.3, C24.2 and C29.8: after that, no message goes by the old configuration. */
export const PROMISED_MS = 2_000;

/** What becomes of a message: the response to it, and the endpoints that get it, once for each request. */
export interface Outcome {
  status: number;
  endpoints: readonly string[];
}

/** One message that is sent to see by which configuration it goes. */
export interface Probe {
  /** In milliseconds since 1970. */
  sentAtMs: number;
  /** The number of its gateway. */
  gateway: number;
  status: number;
  /** Null when it was not accepted. */
  messageId: string | null;
}

/** A change of configuration, and the messages that were sent before and after it. Times are milliseconds since 1970. */
export interface ProbedChange {
  name: string;
  before: Outcome;
  after: Outcome;
  /** Further outcomes of messages that are on their way during the change. */
  meanwhile?: readonly Outcome[];
  /** When the request for the change was sent. */
  beganAtMs: number;
  /** When its response came. */
  changedAtMs: number;
  probes: readonly Probe[];
}

/** Names of the endpoints that got a message, one for each request. */
export type EndpointsOf = (messageId: string) => readonly string[];

export const OUTDATED = 'an old configuration two seconds after its change';

/**
 * Compares what became of each message with the configuration of its time. Every gateway must have sent by the old
 * configuration before, and have got messages two seconds after the change: otherwise nothing is shown.
 */
export function findingsOf(changes: readonly ProbedChange[], endpointsOf: EndpointsOf): Finding[] {
  const outdated: string[] = [];
  const wrong: string[] = [];
  for (const change of changes) {
    for (const probe of change.probes) {
      const outcome = outcomeOf(probe, endpointsOf);
      const isLate = isBound(change, probe);
      const allowed = isLate
        ? [change.after]
        : [change.before, change.after, ...(change.meanwhile ?? [])];
      if (allowed.some((each) => isEqual(each, outcome))) continue;
      (isLate ? outdated : wrong).push(describe(change, probe, outcome));
    }
  }
  const missing = changes.flatMap((change) => notShown(change, endpointsOf));
  return [
    ...finding(OUTDATED, outdated),
    ...finding('a message that went by no configuration', wrong),
    ...finding('a change that shows nothing', missing),
  ];
}

/** Returns how long after its response a change was not used yet, in milliseconds; 0 for at once. */
export function unusedForMs(changes: readonly ProbedChange[], endpointsOf: EndpointsOf): number {
  const ages = changes.flatMap(({ probes, changedAtMs, after }) =>
    probes
      .filter((probe) => !isEqual(outcomeOf(probe, endpointsOf), after))
      .map(({ sentAtMs }) => sentAtMs - changedAtMs),
  );
  return Math.max(0, ...ages);
}

function isBound({ changedAtMs }: ProbedChange, { sentAtMs }: Probe): boolean {
  return sentAtMs >= changedAtMs + PROMISED_MS;
}

function notShown(change: ProbedChange, endpointsOf: EndpointsOf): string[] {
  const { name, before, beganAtMs, probes } = change;
  const gateways = [...new Set(probes.map(({ gateway }) => gateway))];
  const isShown = (gateway: number): boolean => {
    const own = probes.filter((probe) => probe.gateway === gateway);
    const isOld = (probe: Probe): boolean =>
      probe.sentAtMs < beganAtMs && isEqual(outcomeOf(probe, endpointsOf), before);
    return own.some(isOld) && own.some((probe) => isBound(change, probe));
  };
  const unseen = gateways.filter((gateway) => !isShown(gateway));
  if (gateways.length === 0) return [`${name}: no message`];
  return unseen.map((gateway) => `${name}: at gateway ${gateway}`);
}

function outcomeOf({ status, messageId }: Probe, endpointsOf: EndpointsOf): Outcome {
  return { status, endpoints: messageId === null ? [] : endpointsOf(messageId) };
}

function isEqual(one: Outcome, other: Outcome): boolean {
  const sorted = ({ endpoints }: Outcome): string => endpoints.toSorted().join(' ');
  return one.status === other.status && sorted(one) === sorted(other);
}

function describe(
  { name, changedAtMs }: ProbedChange,
  { sentAtMs, gateway, messageId }: Probe,
  { status, endpoints }: Outcome,
): string {
  const to = endpoints.join(', ') || 'no endpoint';
  return `${name}: ${status}, ${to}, sent to gateway ${gateway} ${sentAtMs - changedAtMs} ms after the change (${messageId ?? 'no id'})`;
}
