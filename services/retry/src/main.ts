import { runService } from '@posthorn/platform/service/run-service.ts';
import { retryConfig } from './config.ts';
import { startRetry } from './start-retry.ts';

await runService('retry', retryConfig, startRetry);
