/** Returns all metrics of one service as text; empty when it does not respond. */
export async function readMetrics(opsUrl: string): Promise<string> {
  try {
    const response = await fetch(`${opsUrl}/metrics`, { signal: AbortSignal.timeout(5_000) });
    return await response.text();
  } catch {
    return '';
  }
}

/** Returns the sum of the samples of one metric whose labels contain `labels`; null when there is none. */
export function metricIn(text: string, name: string, labels = ''): number | null {
  const values = samplesOf(text, name)
    .filter((line) => line.includes(labels))
    .map(valueOf);
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0);
}

/** Returns the values of one metric by one of its labels; samples without that label are left out. */
export function metricBy(text: string, name: string, label: string): Record<string, number> {
  const labelled = new RegExp(`[{,]${label}="([^"]*)"`);
  const values = samplesOf(text, name).flatMap((line) => {
    const labelValue = labelled.exec(line)?.[1];
    return labelValue === undefined ? [] : [[labelValue, valueOf(line)] as const];
  });
  return Object.fromEntries(values);
}

function samplesOf(text: string, name: string): string[] {
  // A metric without labels has no braces.
  return text.split('\n').filter((line) => /^\w+/.exec(line)?.[0] === name);
}

function valueOf(line: string): number {
  return Number(line.slice(line.lastIndexOf(' ') + 1));
}
