/** Sum of the samples of one metric whose labels contain `labels`; null when there is none or nobody answers. */
export async function readMetric(
  opsUrl: string,
  name: string,
  labels = '',
): Promise<number | null> {
  try {
    const answer = await fetch(`${opsUrl}/metrics`, { signal: AbortSignal.timeout(5_000) });
    return metricIn(await answer.text(), name, labels);
  } catch {
    return null;
  }
}

export function metricIn(text: string, name: string, labels: string): number | null {
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`));
  const values = lines
    .filter((line) => line.includes(labels))
    .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)));
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0);
}
