import { runSetup } from './run-setup.ts';
import { ADD_PARTITIONS } from './steps.ts';

await runSetup(ADD_PARTITIONS);
