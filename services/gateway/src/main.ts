import { exitOnSignals } from '@posthorn/platform/service/exit-on-signals.ts';

const takeOver = exitOnSignals();
const { runService } = await import('@posthorn/platform/service/run-service.ts');
const { gatewayConfig } = await import('./config.ts');
const { startGateway } = await import('./start.ts');
await runService('gateway', gatewayConfig, startGateway, takeOver);
