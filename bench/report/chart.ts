/** Values over seconds; null leaves a gap. */
export interface Line {
  name: string;
  points: readonly (readonly [second: number, value: number | null])[];
}

export interface Panel {
  title: string;
  lines: readonly Line[];
}

/** Panels one below the other, under a title and lines of text. */
export interface Column {
  title: string;
  notes: readonly string[];
  panels: readonly Panel[];
}

export interface Chart {
  title: string;
  notes: readonly string[];
  columns: readonly Column[];
}

const COLORS = [
  '#1f6feb',
  '#d1242f',
  '#1a7f37',
  '#9a6700',
  '#8250df',
  '#bf3989',
  '#0b7285',
  '#57606a',
];
const COLUMN_PX = 480;
const PANEL_PX = 210;
const PLOT = { left: 56, top: 26, width: 380, height: 126 };
const LINE_PX = 16;

/** Returns one self-contained SVG: no script, and no font or image from elsewhere. */
export function drawChart({ title, notes, columns }: Chart): string {
  const headPx = 40 + notes.length * LINE_PX;
  const notesPx = 30 + Math.max(0, ...columns.map((column) => column.notes.length)) * LINE_PX;
  const rows = Math.max(0, ...columns.map(({ panels }) => panels.length));
  const width = Math.max(900, columns.length * COLUMN_PX + 20);
  const height = headPx + notesPx + rows * PANEL_PX + 10;
  const drawn = columns.map((column, n) =>
    moved(10 + n * COLUMN_PX, headPx, drawColumn(column, notesPx)),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(10, 26, title, 'font-size="18" font-weight="bold"'),
    ...notes.map((note, n) => text(10, 46 + n * LINE_PX, note, 'fill="#57606a"')),
    ...drawn,
    '</svg>\n',
  ].join('\n');
}

function drawColumn({ title, notes, panels }: Column, notesPx: number): string {
  return [
    text(0, 16, title, 'font-size="14" font-weight="bold"'),
    ...notes.map((note, n) => text(0, 34 + n * LINE_PX, note)),
    ...panels.map((panel, n) => moved(0, notesPx + n * PANEL_PX, drawPanel(panel))),
  ].join('\n');
}

function drawPanel({ title, lines }: Panel): string {
  const all = lines.flatMap(({ points }) => points);
  const maxX = Math.max(1, ...all.map(([second]) => second));
  const maxY = roundUp(Math.max(1, ...all.map(([, value]) => value ?? 0)));
  const scale: Scale = {
    x: (second) => PLOT.left + (second / maxX) * PLOT.width,
    y: (value) => PLOT.top + PLOT.height - (value / maxY) * PLOT.height,
  };
  return [
    text(PLOT.left, 14, title, 'font-weight="bold"'),
    ...[0, maxY / 2, maxY].map((value) => gridLine(scale.y(value), String(value))),
    text(PLOT.left + PLOT.width - 40, PLOT.top + PLOT.height + 14, `${Math.round(maxX)} s`),
    ...lines.map((line, n) => drawLine(line, scale, colorOf(n))),
    ...lines.map(({ name }, n) => legend(name, n)),
  ].join('\n');
}

interface Scale {
  x: (second: number) => number;
  y: (value: number) => number;
}

function drawLine({ points }: Line, { x, y }: Scale, color: string): string {
  let isPenDown = false;
  const steps = points.map(([second, value]) => {
    if (value === null) {
      isPenDown = false;
      return '';
    }
    const step = `${isPenDown ? 'L' : 'M'}${x(second).toFixed(1)} ${y(value).toFixed(1)}`;
    isPenDown = true;
    return step;
  });
  const path = steps.filter(Boolean).join(' ');
  return path === '' ? '' : `<path d="${path}" fill="none" stroke="${color}" stroke-width="1.5"/>`;
}

function gridLine(y: number, label: string): string {
  const right = PLOT.left + PLOT.width;
  return [
    `<path d="M${PLOT.left} ${y.toFixed(1)} L${right} ${y.toFixed(1)}" stroke="#d0d7de"/>`,
    text(PLOT.left - 6, y + 4, label, 'text-anchor="end" fill="#57606a"'),
  ].join('');
}

/** Below the plot, four names in a row. */
function legend(name: string, n: number): string {
  const x = PLOT.left + (n % 4) * 104;
  const y = PLOT.top + PLOT.height + 30 + Math.floor(n / 4) * 14;
  return text(x, y, name, `fill="${colorOf(n)}"`);
}

function colorOf(n: number): string {
  return COLORS[n % COLORS.length] ?? '#000000';
}

/** Rounds up to 1, 2 or 5 times a power of ten. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10) * power;
}

function moved(x: number, y: number, inner: string): string {
  return `<g transform="translate(${x} ${y})">\n${inner}\n</g>`;
}

function text(x: number, y: number, content: string, attributes = ''): string {
  return `<text x="${x}" y="${y.toFixed(1)}" ${attributes}>${escaped(content)}</text>`;
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
