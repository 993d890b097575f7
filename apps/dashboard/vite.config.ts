import { defineConfig } from 'vite';

/** Relative addresses, so that the files work below any path. Nothing is inlined: the gateway forbids it. */
export default defineConfig({
  root: import.meta.dirname,
  base: './',
  logLevel: 'warn',
  build: {
    target: 'es2023',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      onLog(level, log, report) {
        // Mantine marks its files for React's server components, of which there are none.
        if (log.code !== 'MODULE_LEVEL_DIRECTIVE') report(level, log);
      },
    },
  },
});
