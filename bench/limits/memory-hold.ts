import type { ServiceName } from '../../tools/local-stack/supervisor/services.ts';
import type { Child, ChildSpec } from '../../tools/local-stack/processes/child.ts';

/** What ends a service that takes more memory than its limit. */
export interface MemoryHold {
  /** For the report: "a memory cgroup (version 1)". */
  heldBy: string;
  /** How the service is started instead. */
  startOf: (service: ServiceName, spec: ChildSpec) => ChildSpec;
  /** It has been started. */
  onStarted: (service: ServiceName, child: Child) => void;
  /** True when this is what ended it. */
  hasEnded: (service: ServiceName) => boolean;
  close: () => Promise<void>;
}
