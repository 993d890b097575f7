import { runService } from '@posthorn/platform/service/run-service.ts';
import { dispatcherConfig } from './config.ts';
import { startDispatcher } from './start-dispatcher.ts';

await runService('dispatcher', dispatcherConfig, startDispatcher);
