import { runSetup } from './run-setup.ts';
import { CREATE_INDEXES } from './steps.ts';

await runSetup(CREATE_INDEXES);
