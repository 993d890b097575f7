import type { Verdict } from '../audit/audit.ts';
import type { Finding } from '../audit/finding.ts';

interface Base {
  round: string;
  repetition: number;
  seconds: number;
  startedAt: string;
}

/** One run of a round, as it is reported. */
export interface RoundResult {
  round: string;
  repetition: number;
  seconds: number;
  rate: number;
  seed: number;
  startedAt: string;
  verdict: Verdict;
  /** What the fault has reported. */
  notes: readonly string[];
}

/** The result of one run of a round. */
export type Result =
  | (RoundResult & { kind: 'audited' })
  /** A round without a stack. */
  | (Base & { kind: 'lone'; findings: Finding[] })
  /** The round could not be run to its end. */
  | (Base & { kind: 'broken off'; reason: string });

export function findingsOf(result: Result): Finding[] {
  switch (result.kind) {
    case 'audited':
      return result.verdict.findings;
    case 'lone':
      return result.findings;
    case 'broken off':
      return [{ what: 'broken off', count: 1, examples: [result.reason] }];
  }
}

export function isSound(result: Result): boolean {
  return findingsOf(result).length === 0;
}
