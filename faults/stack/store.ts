import type { Child } from '../../tools/local-stack/processes/child.ts';
import { signalGroup } from '../../tools/local-stack/processes/signal-group.ts';

/** A store that can be suspended, killed and started again on its data. */
export interface Store {
  pid: () => number;
  /** Suspends the process with SIGSTOP. */
  freeze: () => void;
  /** Resumes it. */
  thaw: () => void;
  /** SIGKILL, like the loss of its machine. */
  kill: () => Promise<void>;
  /** Shuts it down in order. */
  stop: () => Promise<void>;
  /** Starts it again after it was killed or stopped; resolves when it serves requests. */
  start: () => Promise<void>;
}

/** Starts a store; `launch` must find the data of the last start. */
export async function openStore(launch: () => Promise<Child>): Promise<Store> {
  let child = await launch();
  return {
    pid: () => child.pid,
    freeze: () => {
      signalGroup(child.pid, 'SIGSTOP');
    },
    thaw: () => {
      signalGroup(child.pid, 'SIGCONT');
    },
    kill: () => child.kill(),
    stop: () => child.stop(),
    async start() {
      child = await launch();
    },
  };
}
