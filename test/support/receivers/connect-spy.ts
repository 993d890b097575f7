import { createHook } from 'node:async_hooks';

export interface ConnectSpy {
  /** Returns how many connections were requested from the kernel since the last `start`. */
  opened: () => number;
  start: () => void;
  stop: () => void;
}

/** Node reports every connect request by this name before a packet is sent. */
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
