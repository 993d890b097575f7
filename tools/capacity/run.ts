import { podMemoryLimits } from '../../bench/pod-limits.ts';
import { planCapacity } from './capacity.ts';
import { CommandLineError, helpText, readLoad } from './command-line.ts';
import { capacityText } from './print.ts';

try {
  const load = readLoad(process.argv.slice(2));
  console.log(
    load === null ? helpText() : capacityText(load, planCapacity(load, podMemoryLimits())),
  );
} catch (error) {
  if (!(error instanceof CommandLineError)) throw error;
  console.error(`${error.message}\n\n${helpText()}`);
  process.exitCode = 2;
}
