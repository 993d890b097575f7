import type { Scenario } from './scenario.ts';
import { accept } from './scenarios/accept.ts';
import { dashboard } from './scenarios/dashboard/dashboard.ts';
import { deliver } from './scenarios/deliver.ts';
import { expiry } from './scenarios/expiry/expiry.ts';
import { fanOut } from './scenarios/fan-out.ts';
import { greedy } from './scenarios/greedy/greedy.ts';
import { history } from './scenarios/history/history.ts';
import { isolation } from './scenarios/isolation.ts';
import { manyEndpoints } from './scenarios/many-endpoints.ts';
import { overload } from './scenarios/overload/overload.ts';
import { retry } from './scenarios/retry/retry.ts';

export const SCENARIOS: Record<string, Scenario> = {
  accept,
  dashboard,
  deliver,
  expiry,
  greedy,
  isolation,
  'fan-out': fanOut,
  history,
  'many-endpoints': manyEndpoints,
  overload,
  retry,
};
