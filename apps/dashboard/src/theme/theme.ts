import {
  createTheme,
  type MantineColorScheme,
  type MantineColorSchemeManager,
} from '@mantine/core';
import { DASHBOARD_PATH } from '../api/addresses.ts';

/** The colours are in theme.css. */
export const theme = createTheme({
  cursorType: 'pointer',
  defaultRadius: 'sm',
  components: {
    Tooltip: { defaultProps: { multiline: true, maw: 360, withinPortal: true } },
  },
});

const COOKIE = 'posthorn_theme';
const YEAR_SECONDS = 31_536_000;

/** Keeps the colour scheme in a cookie. The dashboard uses no storage of the browser. */
export const colorSchemes: MantineColorSchemeManager = {
  get: (byDefault) => {
    const found = new RegExp(`${COOKIE}=(light|dark|auto)`).exec(document.cookie)?.[1];
    return (found as MantineColorScheme | undefined) ?? byDefault;
  },
  set: (value) => {
    document.cookie = `${COOKIE}=${value}; path=${DASHBOARD_PATH}; max-age=${YEAR_SECONDS}; samesite=strict`;
  },
  clear: () => {
    document.cookie = `${COOKIE}=; path=${DASHBOARD_PATH}; max-age=0; samesite=strict`;
  },
  subscribe: () => undefined,
  unsubscribe: () => undefined,
};
