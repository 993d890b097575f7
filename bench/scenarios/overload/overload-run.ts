import type { Phase } from '../../measure/measure-phase.ts';
import type { BacklogRun } from './backlog.ts';
import type { RestRun } from './rest.ts';
import type { WatchedRun } from './watch.ts';

/** All measurements of one run. */
export interface OverloadRun extends WatchedRun {
  connections: { few: Phase; many: Phase };
  hot: Phase[];
  backlog: BacklogRun;
  wave: Phase;
  large: Phase;
  rest: RestRun;
}
