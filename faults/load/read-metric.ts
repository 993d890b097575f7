/** Returns the values of a metric, one for each set of labels. Empty when the process does not answer or has none. */
export async function readMetric(opsUrl: string, name: string): Promise<number[]> {
  const text = await fetch(`${opsUrl}/metrics`, { signal: AbortSignal.timeout(5_000) })
    .then((response) => response.text())
    .catch(() => '');
  return valuesIn(text, name);
}

/** Reads the Prometheus text format. */
export function valuesIn(text: string, name: string): number[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)));
}
