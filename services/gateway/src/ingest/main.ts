import { exitOnSignals } from '@posthorn/platform/service/exit-on-signals.ts';

const takeOver = exitOnSignals();
const { runService } = await import('@posthorn/platform/service/run-service.ts');
const { ingestConfig } = await import('../config.ts');
const { startIngest } = await import('./start-ingest.ts');
await runService('ingest', ingestConfig, startIngest, takeOver);
