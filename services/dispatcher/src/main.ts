import { runService } from '@posthorn/platform/service.ts';
import { dispatcherConfig } from './config.ts';
import { startDispatcher } from './start-dispatcher.ts';

await runService('dispatcher', dispatcherConfig, startDispatcher);
