const LEAST_CONTRAST = 4.5;

/** White text on it can be read (WCAG 2.2, 1.4.3). */
export function isDarkEnough(color: string): boolean {
  const digits = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(color)?.slice(1);
  if (digits === undefined) return false;
  const [red = 0, green = 0, blue = 0] = digits.map((each) => linear(parseInt(each, 16) / 255));
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return 1.05 / (luminance + 0.05) >= LEAST_CONTRAST;
}

function linear(channel: number): number {
  return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
}
