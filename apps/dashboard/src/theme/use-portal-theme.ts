import { useMantineColorScheme } from '@mantine/core';
import { useEffect } from 'react';
import type { PortalTheme } from '../api/session.ts';
import { isDarkEnough } from './contrast.ts';
import { suggestScheme } from './theme.ts';

const PRIMARY = '--mantine-color-blue-filled';

/** Applies the colours that the platform gave with the link of its portal. */
export function usePortalTheme(theme: PortalTheme | null): void {
  const { setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  const { colorScheme, primaryColor } = theme ?? {};
  useEffect(() => {
    if (colorScheme === undefined) return;
    suggestScheme(() => {
      setColorScheme(colorScheme);
    });
  }, [colorScheme, setColorScheme]);
  useEffect(() => {
    if (primaryColor === undefined || !isDarkEnough(primaryColor)) return;
    const { style } = document.documentElement;
    style.setProperty(PRIMARY, primaryColor);
    style.setProperty(`${PRIMARY}-hover`, primaryColor);
  }, [primaryColor]);
}
