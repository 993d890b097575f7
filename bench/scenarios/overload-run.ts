import type { Phase } from '../measure/measure-phase.ts';
import type { BacklogRun } from './overload-backlog.ts';
import type { RestRun } from './overload-rest.ts';
import type { WatchedRun } from './overload-watch.ts';

/** All that one run has found. */
export interface OverloadRun extends WatchedRun {
  connections: { few: Phase; many: Phase };
  hot: Phase[];
  backlog: BacklogRun;
  wave: Phase;
  large: Phase;
  rest: RestRun;
}
