import { exitOnSignals } from '@posthorn/platform/service/exit-on-signals.ts';

const takeOver = exitOnSignals();
const { runService } = await import('@posthorn/platform/service/run-service.ts');
const { dispatcherConfig } = await import('./config.ts');
const { startDispatcher } = await import('./start.ts');
await runService('dispatcher', dispatcherConfig, startDispatcher, takeOver);
