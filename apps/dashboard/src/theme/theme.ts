import {
  createTheme,
  type MantineColorScheme,
  type MantineColorSchemeManager,
  useMantineColorScheme,
} from '@mantine/core';
import { useEffect } from 'react';
import { PAGES_PATH, PORTAL_COMPANY_ID } from '../api/addresses.ts';
import type { PortalTheme } from '../api/session.ts';
import { isDarkEnough } from './contrast.ts';

/** The colours are in theme.css. */
export const theme = createTheme({
  cursorType: 'pointer',
  defaultRadius: 'sm',
  respectReducedMotion: true,
  components: {
    Tooltip: { defaultProps: { multiline: true, maw: 360, withinPortal: true } },
  },
});

/** A portal has its own, so that no theme changes how the dashboard looks to who works there. */
const COOKIE = PORTAL_COMPANY_ID === null ? 'posthorn_theme' : 'posthorn_portal_theme';
const YEAR_SECONDS = 31_536_000;

let isKept = true;

function chosenScheme(): MantineColorScheme | undefined {
  const found = new RegExp(`${COOKIE}=(light|dark|auto)`).exec(document.cookie)?.[1];
  return found as MantineColorScheme | undefined;
}

/** Applies a colour scheme that nobody chose here. It is not kept, and gives way to one that was chosen. */
function suggestScheme(apply: () => void): void {
  if (chosenScheme() !== undefined) return;
  isKept = false;
  apply();
  isKept = true;
}

/** Keeps the colour scheme in a cookie. The dashboard uses no storage of the browser. */
export const colorSchemes: MantineColorSchemeManager = {
  get: (byDefault) => chosenScheme() ?? byDefault,
  set: (value) => {
    if (!isKept) return;
    document.cookie = `${COOKIE}=${value}; path=${PAGES_PATH}; max-age=${YEAR_SECONDS}; samesite=strict`;
  },
  clear: () => {
    document.cookie = `${COOKIE}=; path=${PAGES_PATH}; max-age=0; samesite=strict`;
  },
  subscribe: () => undefined,
  unsubscribe: () => undefined,
};

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
