import { exitOnSignals } from '@posthorn/platform/service/exit-on-signals.ts';

const takeOver = exitOnSignals();
const { runService } = await import('@posthorn/platform/service/run-service.ts');
const { retryConfig } = await import('./config.ts');
const { startRetry } = await import('./start.ts');
await runService('retry', retryConfig, startRetry, takeOver);
