import type { ServiceName } from '../../tools/local-stack/supervisor/services.ts';
import type { Child, ChildSpec } from '../../tools/local-stack/processes/child.ts';

/** Kills a service that takes more memory than its limit. */
export interface MemoryEnforcement {
  /** For the report: "a memory cgroup (version 1)". */
  enforcedBy: string;
  /** Returns how the service is to be started instead. */
  startOf: (service: ServiceName, spec: ChildSpec) => ChildSpec;
  /** To be called when it has been started. */
  onStarted: (service: ServiceName, child: Child) => void;
  /** Returns true when the limit was the reason that it ended. */
  hasEnded: (service: ServiceName) => boolean;
  close: () => Promise<void>;
}
