/** One thing that must not be possible, and the tests that try it. */
export interface Check {
  /** S and a number for an area, R and a number for a single way in. */
  id: string;
  /** What an attacker or a fault tries. */
  tried: string;
  /** What must come of it. */
  holds: string;
  /** Parts of the paths of test files; a test of another name in them belongs to the check too. */
  tests: readonly string[];
}
