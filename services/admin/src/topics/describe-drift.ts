import type { Drift, Remedy } from '@posthorn/domain/records/topic-drift.ts';

const HEADER = ['TOPIC', 'SETTING', 'VALUE', 'WANTED', '', 'MEANING'];

const REMEDIES: Record<Remedy, string> = {
  apply: 'topics apply',
  'apply-force': 'topics apply --force',
  'add-partitions': 'docs/partitions.md',
  reassign: 'kafka-reassign-partitions.sh (docs/topics.md)',
};

/** Returns a table with a line for each difference. */
export function driftTable(drifts: readonly Drift[]): string {
  const rows = drifts.map(rowOf);
  const widths = HEADER.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  return [HEADER, ...rows]
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function rowOf({ topic, setting, value, wanted, severity, meaning, remedy }: Drift): string[] {
  const show = (text: string): string => (setting.endsWith('.ms') ? withUnit(text) : text);
  return [
    topic,
    setting,
    show(value),
    show(wanted),
    severity === 'refuse' ? 'REFUSED' : 'warning',
    `${meaning} → ${REMEDIES[remedy]}`,
  ];
}

function withUnit(text: string): string {
  const duration = durationOf(Number(text));
  return duration === '' ? text : `${text} (${duration})`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** Returns a time such as `7d 5s`; '' below a second. */
function durationOf(ms: number): string {
  let left = ms;
  const parts = UNITS.flatMap(([unit, unitMs]) => {
    const count = Math.floor(left / unitMs);
    left -= count * unitMs;
    return count > 0 ? [`${count}${unit}`] : [];
  });
  return parts.join(' ');
}
