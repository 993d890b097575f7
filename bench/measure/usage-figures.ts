import type { Usage, UsageSample } from '../usage/watch-usage.ts';
import { rounded } from '../figures/percentiles.ts';

/** The usage of one part (gateway, kafka, …) over a phase. */
export interface PartFigures {
  cpuSeconds: number;
  /** Per 1,000 accepted messages; null when none was accepted. */
  cpuSecondsPer1000: number | null;
  cores: number;
  residentMiB: number;
}

/** The usage of one part in one second. */
export interface PartSecond {
  second: number;
  cores: number;
  residentMiB: number;
}

interface Span {
  before: Usage;
  after: Usage;
  seconds: number;
  accepted: number;
}

const MIB = 2 ** 20;

/** Returns the parts that existed at both ends; empty where nothing can be read. */
export function figuresOf({ before, after, seconds, accepted }: Span): Record<string, PartFigures> {
  const figures: Record<string, PartFigures> = {};
  for (const [part, { cpuSeconds: endSeconds, residentBytes }] of Object.entries(after)) {
    const start = before[part];
    if (start === undefined) continue;
    const cpuSeconds = endSeconds - start.cpuSeconds;
    figures[part] = {
      cpuSeconds: rounded(cpuSeconds, 2),
      cpuSecondsPer1000: accepted === 0 ? null : rounded((cpuSeconds * 1_000) / accepted, 3),
      cores: rounded(cpuSeconds / seconds, 2),
      residentMiB: rounded(residentBytes / MIB),
    };
  }
  return figures;
}

export function usageSeconds(
  samples: readonly UsageSample[],
  startedAtMs: number,
): Record<string, PartSecond[]> {
  const lines: Record<string, PartSecond[]> = {};
  for (const [index, { atMs, usage }] of samples.entries()) {
    const last = samples[index - 1];
    if (last === undefined || last.atMs < startedAtMs) continue;
    for (const [part, { cpuSeconds, residentBytes }] of Object.entries(usage)) {
      const used = cpuSeconds - (last.usage[part]?.cpuSeconds ?? cpuSeconds);
      (lines[part] ??= []).push({
        second: rounded((atMs - startedAtMs) / 1_000),
        cores: rounded((used * 1_000) / (atMs - last.atMs), 2),
        residentMiB: rounded(residentBytes / MIB),
      });
    }
  }
  return lines;
}
