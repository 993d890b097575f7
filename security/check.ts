/** One thing that must not be possible, and the tests that try it. */
export interface Check {
  /** S1 to S13 are the areas; R1 to R21 are single ways in that were found and closed. */
  id: string;
  /** What an attacker or a fault tries. */
  tried: string;
  /** What must come of it. */
  holds: string;
  /** Parts of the paths of test files; a test of another name in them belongs to the check too. */
  tests: readonly string[];
}
