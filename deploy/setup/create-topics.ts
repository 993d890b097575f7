import { runSetup } from './run-setup.ts';
import { CREATE_TOPICS } from './steps.ts';

await runSetup(CREATE_TOPICS);
