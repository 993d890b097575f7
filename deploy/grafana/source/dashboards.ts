import { CAPACITY } from './capacity.ts';
import type { Dashboard } from './dashboard.ts';
import { OVERVIEW } from './overview.ts';
import { ROLLOUT } from './rollout.ts';
import { WAY_OF_A_MESSAGE } from './way-of-a-message.ts';

export const DASHBOARDS: readonly Dashboard[] = [OVERVIEW, WAY_OF_A_MESSAGE, CAPACITY, ROLLOUT];
