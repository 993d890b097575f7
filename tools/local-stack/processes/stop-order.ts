/**
 * The gateway stops first, so that nothing is accepted while the other services drain. The stores stop last, because
 * draining services write to them. One-shot programs are not listed; they stop before all others.
 */
const STOP_ORDER = ['gateway', 'dispatcher', 'retry', 'redis', 'mongodb', 'kafka'];

export function inStopOrder<T extends { name: string }>(processes: readonly T[]): T[] {
  return processes.toSorted((a, b) => STOP_ORDER.indexOf(a.name) - STOP_ORDER.indexOf(b.name));
}
