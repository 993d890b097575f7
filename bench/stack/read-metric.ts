/** All metrics of one service as text; empty when nobody answers. */
export async function readMetrics(opsUrl: string): Promise<string> {
  try {
    const answer = await fetch(`${opsUrl}/metrics`, { signal: AbortSignal.timeout(5_000) });
    return await answer.text();
  } catch {
    return '';
  }
}

/** Sum of the samples of one metric whose labels contain `labels`; null when there is none or nobody answers. */
export async function readMetric(
  opsUrl: string,
  name: string,
  labels = '',
): Promise<number | null> {
  return metricIn(await readMetrics(opsUrl), name, labels);
}

export function metricIn(text: string, name: string, labels = ''): number | null {
  const values = samplesOf(text, name)
    .filter((line) => line.includes(labels))
    .map(valueOf);
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0);
}

/** The values of one metric by what one of its labels says; samples without that label are left out. */
export function metricBy(text: string, name: string, label: string): Record<string, number> {
  const labelled = new RegExp(`[{,]${label}="([^"]*)"`);
  const values = samplesOf(text, name).flatMap((line) => {
    const says = labelled.exec(line)?.[1];
    return says === undefined ? [] : [[says, valueOf(line)] as const];
  });
  return Object.fromEntries(values);
}

function samplesOf(text: string, name: string): string[] {
  return text.split('\n').filter((line) => line.startsWith(`${name}{`));
}

function valueOf(line: string): number {
  return Number(line.slice(line.lastIndexOf(' ') + 1));
}
