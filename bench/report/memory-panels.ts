import type { MemorySample } from '../usage/watch-memory.ts';
import type { Panel } from './chart.ts';

export function memoryPanels(service: string, samples: readonly MemorySample[]): Panel[] {
  const panel = (title: string, of: (sample: MemorySample) => number | null): Panel => ({
    title,
    lines: [{ name: service, points: samples.map((each) => [each.second, of(each)] as const) }],
  });
  return [
    panel('resident memory, MiB', ({ residentMiB }) => residentMiB),
    panel('heap used, MiB', ({ heapUsedMiB }) => heapUsedMiB),
    panel('active timers', ({ timers }) => timers),
  ];
}
