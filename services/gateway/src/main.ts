import { runService } from '@posthorn/platform/service/run-service.ts';
import { gatewayConfig } from './config.ts';
import { startGateway } from './start-gateway.ts';

await runService('gateway', gatewayConfig, startGateway);
