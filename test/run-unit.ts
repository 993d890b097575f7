import { createTally } from './support/tally.ts';

const tally = createTally();
await tally.jest('unit', {});
process.exitCode = tally.report();
