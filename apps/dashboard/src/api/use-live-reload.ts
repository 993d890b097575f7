import { useEffect, useRef } from 'react';
import { useLive, type LiveEvent } from './live.ts';

/** A busy webhook has hundreds of attempts per second; a person reads two states per second at most. */
const PAUSE_MS = 500;

/** Reloads soon after an event that concerns what is shown, once for all that come meanwhile. */
export function useLiveReload(concerns: (event: LiveEvent) => boolean, reload: () => void): void {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(
    () => () => {
      clearTimeout(timer.current);
    },
    [],
  );
  useLive((event) => {
    if (timer.current !== undefined || !concerns(event)) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      reload();
    }, PAUSE_MS);
  });
}
