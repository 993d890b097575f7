import type { Phase } from '../measure/measure-phase.ts';
import type { Percentiles } from '../figures/percentiles.ts';
import type { Second } from '../figures/seconds.ts';
import type { Spending } from '../measure/spending.ts';
import type { PartSecond } from '../measure/usage-figures.ts';
import type { Column, Line, Panel } from './chart.ts';

export function phaseColumn(phase: Phase): Column {
  const { timeline, usage } = phase;
  const over = (name: string, value: (second: Second) => number | null): Line => ({
    name,
    points: timeline.map((each) => [each.second, value(each)]),
  });
  return {
    title: phase.name,
    notes: notesOf(phase),
    panels: [
      {
        title: 'latency, ms',
        lines: [
          over('accept p50', ({ acceptMs }) => acceptMs.p50),
          over('accept p99', ({ acceptMs }) => acceptMs.p99),
          over('end to end p50', ({ endToEndMs }) => endToEndMs.p50),
          over('end to end p99', ({ endToEndMs }) => endToEndMs.p99),
        ],
      },
      {
        title: 'messages per second',
        lines: [
          over('accepted', ({ accepted }) => accepted),
          over('delivered', ({ delivered }) => delivered),
        ],
      },
      ...usagePanels(usage),
    ],
  };
}

export function usagePanels(usage: Spending['usage']): Panel[] {
  const panel = (title: string, of: (second: PartSecond) => number): Panel => ({
    title,
    lines: Object.entries(usage).map(([name, seconds]) => ({
      name,
      points: seconds.map((each) => [each.second, of(each)] as const),
    })),
  });
  return [
    panel('CPU, cores', ({ cores }) => cores),
    panel('resident memory, MiB', ({ residentMiB }) => residentMiB),
  ];
}

function notesOf({ acceptMs, endToEndMs, ...phase }: Phase): string[] {
  const cpu = phase.cpuSecondsPer1000 ?? 'not known';
  const others = phase.otherCores ?? 'not known';
  return [
    `accepted ${phase.acceptedPerSecond}/s, delivered ${phase.deliveredPerSecond}/s, CPU ${cpu} s per 1,000`,
    `rest of the machine: ${others} cores`,
    `accept ${describePercentiles(acceptMs)}`,
    `end to end ${describePercentiles(endToEndMs)}`,
  ];
}

export function describePercentiles({ p50, p90, p99, p999, max }: Percentiles): string {
  const of = (value: number | null): string => String(value ?? '–');
  return `p50 ${of(p50)}, p90 ${of(p90)}, p99 ${of(p99)}, p99.9 ${of(p999)}, max ${of(max)} ms`;
}
