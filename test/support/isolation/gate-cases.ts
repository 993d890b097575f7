import {
  type AttemptView,
  decide,
  type Decision,
  type DispatcherView,
  type EndpointView,
} from '../../../services/dispatcher/src/isolation/gate.ts';

export const ATTEMPT: AttemptView = {
  queue: 'first',
  reservedInMs: 0,
  precedesBooked: false,
  ahead: 0,
  lacksMemory: false,
};
export const ENDPOINT: EndpointView = {
  circuit: { kind: 'closed' },
  isSlow: false,
  hasRateLimit: false,
  isPaced: false,
  pauseInMs: 0,
  paceInMs: 0,
  hostInMs: 0,
  bookedInMs: 0,
  running: { first: 0, retry: 0, slow: 0 },
  waitingSlow: 0,
  wasSlowLast: false,
  concurrency: 16,
  spacingMs: 10,
};
const DISPATCHER: DispatcherView = {
  hasFreeSlot: true,
  maySlowUseFast: true,
  maxWaitMs: 30_000,
  isOverloaded: false,
};

/** What differs from an attempt that may start at once. */
export interface Case {
  attempt?: Partial<AttemptView>;
  endpoint?: Partial<EndpointView>;
  dispatcher?: Partial<DispatcherView>;
}

export const decideCase = ({ attempt, endpoint, dispatcher }: Case): Decision =>
  decide(
    { ...ATTEMPT, ...attempt },
    { ...ENDPOINT, ...endpoint },
    { ...DISPATCHER, ...dispatcher },
  );
