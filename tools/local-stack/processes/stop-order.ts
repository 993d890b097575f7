/**
 * The gateway goes first, so that nothing new is accepted while the rest drains; the stores go last, because every
 * drain writes to them. Names not listed are one-shot programs: they end before all others.
 */
const STOP_ORDER = ['gateway', 'dispatcher', 'retry', 'redis', 'mongodb', 'kafka'];

export function inStopOrder<T extends { name: string }>(processes: readonly T[]): T[] {
  return processes.toSorted((a, b) => STOP_ORDER.indexOf(a.name) - STOP_ORDER.indexOf(b.name));
}
