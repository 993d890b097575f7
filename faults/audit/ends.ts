import type { Stop } from './evidence.ts';
import { finding, type Finding } from './finding.ts';

interface Ends {
  stops: readonly Stop[];
  /** Services that ended by themselves. */
  crashes: readonly string[];
}

/** What is wrong with how services ended. */
export function findingsOfEnds({ stops, crashes }: Ends, stopWithinMs: number): Finding[] {
  return [
    ...finding('a service ended by itself', crashes),
    ...finding(
      'a stop went wrong',
      stops.flatMap((stop) => stopProblem(stop, stopWithinMs)),
    ),
  ];
}

function stopProblem({ service, tookMs, exit }: Stop, stopWithinMs: number): string[] {
  if (exit === 'exit code 0' && tookMs <= stopWithinMs) return [];
  return [`${service} ended with ${exit} after ${Math.round(tookMs)} ms`];
}
