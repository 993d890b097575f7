import { runSetup } from './run-setup.ts';
import { BEGIN_DAYS } from './steps.ts';

await runSetup(BEGIN_DAYS);
