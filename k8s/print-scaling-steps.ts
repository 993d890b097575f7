import { stepsPatches, yamlOf } from './scaling-steps.ts';

const partitions = Number(process.argv[2]);
if (Number.isInteger(partitions) && partitions >= 1 && partitions <= 1_000) {
  process.stdout.write(
    `# Written by \`node k8s/print-scaling-steps.ts ${partitions}\`.\n${yamlOf(...stepsPatches(partitions))}`,
  );
} else {
  process.stderr.write('usage: node k8s/print-scaling-steps.ts TOPIC_PARTITIONS\n');
  process.exitCode = 2;
}
