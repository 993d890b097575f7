import { createHook } from 'node:async_hooks';

export interface ConnectSpy {
  /** How many connections were asked of the kernel since the last `start`. */
  opened: () => number;
  start: () => void;
  stop: () => void;
}

/** Node announces every connect request under this name, before a packet leaves. */
export function createConnectSpy(): ConnectSpy {
  let opened = 0;
  const hook = createHook({
    init(_id, type) {
      if (type === 'TCPCONNECTWRAP') opened += 1;
    },
  });
  return {
    opened: () => opened,
    start() {
      opened = 0;
      hook.enable();
    },
    stop: () => void hook.disable(),
  };
}
