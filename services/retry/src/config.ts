import { settings } from '@posthorn/platform/settings.ts';
import { z } from 'zod';

export const retryConfig = z.object({
  ...settings.kafka,
  ...settings.mongodb,
  ...settings.process(9103),
});

export type RetryConfig = z.infer<typeof retryConfig>;
