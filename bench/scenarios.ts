import type { Scenario } from './scenario.ts';
import { deliver } from './scenarios/deliver.ts';
import { greedy } from './scenarios/greedy/greedy.ts';
import { isolation } from './scenarios/isolation.ts';
import { manyEndpoints } from './scenarios/many-endpoints.ts';
import { overload } from './scenarios/overload/overload.ts';
import { retry } from './scenarios/retry/retry.ts';

export const SCENARIOS: Record<string, Scenario> = {
  deliver,
  greedy,
  isolation,
  'many-endpoints': manyEndpoints,
  overload,
  retry,
};
