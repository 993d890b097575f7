/** What a step saw, and what is wrong; null when all is well. */
export interface StepResult {
  saw: string;
  problem: string | null;
}
