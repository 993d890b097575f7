import type { NeededProgram } from './programs/ensure-programs.ts';

/** A check of the files that operators run: manifests, alerts, dashboards, the image. */
export interface OpsCheck {
  /** Selects it: `npm run check:ops -- alerts`. */
  name: string;
  /** The sentence that is true when the check has passed. */
  shows: string;
  /** Programs outside the repository. Missing ones are installed before it runs. */
  programs: readonly NeededProgram[];
  /**
   * Whether `npm test` runs it too. Only checks that start no stack and take a few seconds with programs of the system: a
   * machine builds Helm and the others from their sources first, for minutes.
   */
  isQuick: boolean;
  /** Returns what was checked, with numbers: "19 alerts, 41 cases". Throws when something is wrong. */
  run: (progress: (line: string) => void) => Promise<string>;
}

export type OpsOutcome =
  | { kind: 'passed'; saw: string }
  | { kind: 'failed'; reason: string }
  /** A program is missing and cannot be installed. Counts as a failure: no check is skipped. */
  | { kind: 'could-not-run'; reason: string };

export interface OpsResult {
  check: OpsCheck;
  outcome: OpsOutcome;
  durationMs: number;
}
