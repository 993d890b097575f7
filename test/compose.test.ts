import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { cidrs, contains, parseIp } from '@posthorn/domain/egress/ip-address.ts';
import { parse } from 'yaml';

interface Compose {
  services: Record<string, { environment?: Record<string, string> }>;
}

const FILE = join(import.meta.dirname, '..', 'docker-compose.yml');
const { services } = parse(readFileSync(FILE, 'utf8'), { merge: true }) as Compose;

describe.each(['gateway', 'dispatcher'])('docker-compose.yml lets deliveries of the %s', (name) => {
  const settings = services[name]?.environment ?? {};
  /** The default of `${EGRESS_ALLOW_CIDRS:-default}`. */
  const [, ranges = ''] = /:-(.*)\}$/.exec(settings.EGRESS_ALLOW_CIDRS ?? '') ?? [];
  const opened = cidrs(...ranges.split(','));

  it('reach the host of the containers', () => {
    const host = parseIp('172.17.0.1');
    expect(host && opened.some((range) => contains(range, host))).toBe(true);
  });

  it('reach no container, and so none of the stores', () => {
    expect(opened.filter(({ bits, prefixBits }) => prefixBits < bits)).toEqual([]);
    expect(settings).not.toHaveProperty('EGRESS_ALLOW_LOOPBACK');
  });
});
